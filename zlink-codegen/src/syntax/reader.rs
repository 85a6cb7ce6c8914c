//! Reads single values of the tree: shapes, keys, texts, numbers, names.
//!
//! It must not know which declaration a value belongs to; callers say what it is.

use std::ops::RangeInclusive;

use super::{Name, Spanned, help};
use crate::diagnostic::{Code, Diagnostic, Severity, Sink, shorten};
use crate::load::{Entry, Kind, Node, Text};
use crate::source::{Source, Span};

/// The longest name, in bytes. Names travel as text of at most 255 bytes, some of them joined.
pub(super) const NAME_BYTES: usize = 64;

/// Reads values of one file.
pub(super) struct Reader<'a> {
    pub(super) source: &'a Source,
    pub(super) sink: &'a mut Sink,
}

impl Reader<'_> {
    pub(super) fn report(&mut self, item: Diagnostic) {
        self.sink.report(item);
    }

    /// The entries of a mapping; an empty value is an empty mapping. Nothing where it is something else, which is
    /// reported: what would follow from its absence need not be.
    pub(super) fn entries<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n [Entry]> {
        match &node.kind {
            Kind::Map(entries) => Some(entries),
            _ if node.is_nothing() => Some(&[]),
            _ => {
                self.misshapen(node, what, "a mapping");
                None
            }
        }
    }

    /// The items of a list; an empty value is an empty list.
    pub(super) fn items<'n>(&mut self, node: &'n Node, what: &str) -> &'n [Node] {
        match &node.kind {
            Kind::List(items) => items,
            _ if node.is_nothing() => &[],
            _ => {
                self.misshapen(node, what, "a list");
                &[]
            }
        }
    }

    fn misshapen(&mut self, node: &Node, what: &str, shape: &str) {
        let message = format!("{what} is {shape}, and this is {}", node.describe());
        let item = Diagnostic::new(Code::WrongShape, node.span, message);
        self.report(match help::example(what) {
            Some(example) => item.help(format!("write `{example}`")),
            None => item,
        });
    }

    pub(super) fn wrong_shape(&mut self, node: &Node, rule: &str) {
        let item = Diagnostic::new(
            Code::WrongShape,
            node.span,
            format!("{rule}, and this is {}", node.describe()),
        );
        self.report(item);
    }

    /// Reports keys that are neither in `known` nor in `later`.
    pub(super) fn keys(&mut self, entries: &[Entry], what: &str, known: &[&str], later: &[&str]) {
        for Entry { key, .. } in entries {
            let name = key.text.as_str();
            if later.contains(&name) {
                let message = format!("`{name}` belongs to a later edition of the generator and is not supported yet");
                self.report(
                    Diagnostic::new(Code::LaterEdition, key.span, message)
                        .help("remove it, or use a newer zlink-codegen"),
                );
            } else if let Some(reason) = help::elsewhere(what, name) {
                let message = format!("{what} has no `{name}`");
                self.report(Diagnostic::new(Code::KeyOfAnotherKind, key.span, message).help(reason));
            } else if !known.contains(&name) {
                let item = Diagnostic::new(
                    Code::UnknownKey,
                    key.span,
                    format!("{what} has no key `{}`", shorten(name)),
                );
                let help = if let Some(instead) = help::instead(what, name) {
                    instead.to_owned()
                } else if let Some(near) = suggest(self.sink, key.span, name, known.iter().chain(later).copied()) {
                    format!("did you mean `{near}`?")
                } else {
                    format!("the keys of {what} are {}", list(known))
                };
                self.report(item.help(help));
            }
        }
    }

    /// Text that is there.
    pub(super) fn text<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n Text> {
        match &node.kind {
            Kind::Text(text) if !node.is_nothing() => Some(text),
            _ => {
                self.wrong_shape(node, &format!("{what} is text"));
                None
            }
        }
    }

    /// A doc text.
    pub(super) fn doc(&mut self, entries: &[Entry]) -> Option<String> {
        let entry = find(entries, "doc")?;
        self.text(&entry.value, "a doc").map(|text| text.text.clone())
    }

    /// The text of a key, as it was written.
    pub(super) fn word(&mut self, entries: &[Entry], key: &str) -> Option<Name> {
        let text = self.text(&find(entries, key)?.value, &format!("`{key}`"))?;
        Some(Name {
            value: text.text.clone(),
            span: text.span,
        })
    }

    /// One of the `words` that a key may have. `what` it is, and what to write where nothing is near.
    pub(super) fn choice<T: Copy>(
        &mut self,
        entries: &[Entry],
        key: &str,
        what: &str,
        words: &[(&str, T)],
        otherwise: &str,
    ) -> Option<Spanned<T>> {
        let Name { value: word, span } = self.word(entries, key)?;
        if let Some((_, value)) = words.iter().find(|(it, _)| *it == word) {
            return Some(Spanned { value: *value, span });
        }
        let item = Diagnostic::new(Code::BadChoice, span, format!("`{}` is no {what}", shorten(&word)));
        let help = match suggest(self.sink, span, &word, words.iter().map(|(word, _)| *word)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => otherwise.to_owned(),
        };
        self.report(item.help(help));
        None
    }

    /// A whole number in `range`, in decimal digits.
    pub(super) fn number(&mut self, text: &Text, what: &str, range: RangeInclusive<i128>) -> Option<i128> {
        let digits = text.text.strip_prefix('-').unwrap_or(&text.text);
        let decimal = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        let canonical = decimal && (digits == "0" && text.text == "0" || !digits.starts_with('0'));
        let number = if canonical {
            text.text.parse::<i128>().ok()
        } else {
            None
        };
        if let Some(number) = number.filter(|number| range.contains(number)) {
            return Some(number);
        }
        let message = format!(
            "{what} is a whole number from {} to {}, and this is `{}`",
            range.start(),
            range.end(),
            shorten(&text.text)
        );
        let mut item = Diagnostic::new(Code::BadNumber, text.span, message);
        if !canonical && text.text.bytes().any(|b| b.is_ascii_digit()) {
            item = item.help("write it in decimal digits, without sign, point, separator or leading zero");
        }
        self.report(item);
        None
    }

    /// A whole number of a smaller type, in `range`.
    pub(super) fn value<T: TryFrom<i128>>(
        &mut self,
        node: &Node,
        what: &str,
        range: RangeInclusive<i128>,
    ) -> Option<Spanned<T>> {
        let Kind::Text(text) = &node.kind else {
            self.wrong_shape(node, &format!("{what} is a whole number"));
            return None;
        };
        if !text.plain {
            let item = Diagnostic::new(
                Code::BadNumber,
                node.span,
                format!("{what} is a whole number, and this is text"),
            );
            self.report(item.help("write it without quotes"));
            return None;
        }
        let number = self.number(text, what, range)?;
        Some(Spanned {
            value: T::try_from(number).ok()?,
            span: node.span,
        })
    }

    /// `true` or `false`, and none of the other words that YAML once took for them.
    pub(super) fn boolean(&mut self, node: &Node, what: &str) -> Option<Spanned<bool>> {
        let word = match &node.kind {
            Kind::Text(text) if text.plain => text.text.as_str(),
            _ => "",
        };
        match word {
            "true" => Some(Spanned {
                value: true,
                span: node.span,
            }),
            "false" => Some(Spanned {
                value: false,
                span: node.span,
            }),
            _ => {
                let item = Diagnostic::new(Code::BadBool, node.span, format!("{what} is true or false"));
                self.report(item.help("write `true` or `false`, without quotes"));
                None
            }
        }
    }

    /// A key that is a name: a letter, then letters, digits and `_`, or what `also` allows.
    pub(super) fn name(&mut self, text: &Text, what: &str, also: &[char]) -> Name {
        let good = text.text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text
                .text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_' || also.contains(&c));
        if !good {
            let more: String = also.iter().map(|c| format!(", `{c}`")).collect();
            let message = format!(
                "`{}` is not {what}: it is a letter, then letters, digits, `_`{more}",
                shorten(&text.text)
            );
            self.report(Diagnostic::new(Code::BadName, text.span, message));
        } else if text.text.len() > NAME_BYTES {
            let message = format!(
                "{what} has at most {NAME_BYTES} characters, and this one has {}",
                text.text.len()
            );
            self.report(Diagnostic::new(Code::BadName, text.span, message));
        }
        // Messages quote names: what is too long for one is cut.
        let value = if text.text.len() > NAME_BYTES {
            shorten(&text.text)
        } else {
            text.text.clone()
        };
        Name { value, span: text.span }
    }

    /// The span of the characters `start..end` of a scalar, or of all of it where its text is not as written.
    pub(super) fn part(&self, text: &Text, start: usize, end: usize) -> Span {
        let written = self.source.slice(text.span);
        if written == text.text {
            text.span.part(start, end)
        } else if written.get(1..written.len().saturating_sub(1)) == Some(text.text.as_str()) {
            text.span.part(start + 1, end + 1)
        } else {
            text.span
        }
    }
}

/// The entry of a key.
pub(super) fn find<'n>(entries: &'n [Entry], key: &str) -> Option<&'n Entry> {
    entries.iter().find(|entry| entry.key.text == key)
}

fn list(words: &[&str]) -> String {
    words
        .iter()
        .map(|word| format!("`{word}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The candidate that the name at a place is probably a misspelling of.
pub(crate) fn suggest<'c>(
    sink: &Sink,
    at: Span,
    name: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    // A hostile file could ask for millions of comparisons that nobody would see.
    const CANDIDATES: usize = 2_000;
    if sink.is_full(at.file, Severity::Error) || name.len() > NAME_BYTES {
        return None;
    }
    let wanted = name.to_ascii_lowercase();
    let far = (wanted.len() / 3).max(1);
    let distances = candidates
        .into_iter()
        .take(CANDIDATES)
        .filter(|candidate| candidate.len() <= NAME_BYTES && candidate.len().abs_diff(wanted.len()) <= far)
        .map(|candidate| {
            let lower = candidate.to_ascii_lowercase();
            (strsim::damerau_levenshtein(&wanted, &lower), candidate)
        });
    distances
        .filter(|(distance, candidate)| *distance <= far && *candidate != name)
        .min()
        .map(|(_, candidate)| candidate)
}
