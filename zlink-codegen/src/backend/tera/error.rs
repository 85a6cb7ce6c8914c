//! What is wrong with templates, and where: the line also where the library tells none.
//!
//! It must not know what templates are for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use ::tera::ErrorKind;

use crate::output::Refused;

/// Every template by its name.
pub(super) struct Sources(pub(super) BTreeMap<String, Source>);

pub(super) struct Source {
    /// What errors call it.
    shown: String,
    pub(super) text: String,
}

impl Source {
    pub(super) fn of(shown: &str, text: &str) -> Self {
        Self {
            shown: shown.to_owned(),
            text: text.to_owned(),
        }
    }
}

impl Sources {
    /// What errors call `template`.
    fn shown(&self, template: &str) -> String {
        self.0.get(template).map_or(template, |it| it.shown.as_str()).to_owned()
    }

    /// The template and the component that an error is about, which says nothing of lines: one that two templates define
    /// (of the two, that of one's own), or one that never ends.
    fn component<'a>(&'a self, error: &'a str) -> Option<(&'a str, &'a str)> {
        if error.starts_with("Maximum render recursion depth for components") {
            return self.endless();
        }
        let rest = error.strip_prefix("Component `")?;
        let (component, templates) = rest.split_once("` is defined in both `")?;
        let (first, second) = templates.trim_end_matches('`').split_once("` and `")?;
        let own = |name: &str| self.0.get(name).is_some_and(|it| it.shown != name);
        Some((if own(second) { second } else { first }, component))
    }

    /// The first component that comes to itself again, with its template.
    fn endless(&self) -> Option<(&str, &str)> {
        let mut components = Vec::new();
        for (template, source) in &self.0 {
            for (at, _) in source.text.match_indices("{%") {
                let Some(rest) = tag(&source.text[at..]).strip_prefix("component ") else {
                    continue;
                };
                let name = rest.split('(').next().unwrap_or_default().trim();
                let body = source.text[at..].split("endcomponent").next().unwrap_or_default();
                components.push((template.as_str(), name, body));
            }
        }
        let calls = |body: &str, name: &str| {
            let mut tags = body.split('<').skip(1);
            tags.any(|tag| {
                tag.strip_prefix(name)
                    .is_some_and(|rest| rest.starts_with([' ', '/', '>', '\n']))
            })
        };
        let again = |&&(_, name, body): &&(&str, &str, &str)| {
            let (mut bodies, mut seen) = (vec![body], BTreeSet::new());
            while let Some(body) = bodies.pop() {
                for (_, called, body) in components.iter().filter(|(_, called, _)| calls(body, called)) {
                    if seen.insert(*called) {
                        bodies.push(body);
                    }
                }
            }
            seen.contains(name)
        };
        components
            .iter()
            .find(again)
            .map(|(template, name, _)| (*template, *name))
    }

    /// Line and column of the first `{% word … %}` in `template` that names `what`.
    fn tag(&self, template: &str, word: &str, what: &str) -> Option<(usize, usize)> {
        let text = self.0.get(template)?.text.as_str();
        let mut tags = text.match_indices("{%");
        let names = |at: usize| {
            tag(&text[at..])
                .strip_prefix(word)
                .is_some_and(|rest| rest.contains(what))
        };
        let (at, _) = tags.find(|(at, _)| names(*at))?;
        let line = text[..at].matches('\n').count() + 1;
        let column = text[..at].rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Some((line, column))
    }
}

/// What the `{%` at the beginning of `text` begins, up to its end.
fn tag(text: &str) -> &str {
    let inside = text.trim_start_matches("{%").split("%}").next().unwrap_or_default();
    inside.trim_start_matches('-').trim()
}

/// Why templates give no files.
#[derive(Clone, PartialEq, Eq)]
pub struct Error {
    /// The template, its line and column from 1, as far as they are known.
    place: Option<(String, Option<(usize, usize)>)>,
    message: String,
}

impl Error {
    /// One of one's own that takes the place of none.
    pub(super) fn useless(shown: &str, built_in: &str) -> Self {
        Self {
            place: Some((shown.to_owned(), None)),
            message: format!("takes the place of no template of this language; they are {built_in}"),
        }
    }

    pub(super) fn of(error: &::tera::Error, template: Option<&str>, sources: &Sources) -> Self {
        let place = |name: &str, at| Some((sources.shown(name), at));
        // The library tells no line of these: it is where the template names the other.
        let naming = |name: &str, word, other: &str| place(name, sources.tag(name, word, other));
        let (place, message) = match error.kind() {
            ErrorKind::SyntaxError(report) | ErrorKind::RenderingError(report) => {
                let span = report.span();
                let at = (span.start_line, span.start_col + 1);
                (place(report.filename(), Some(at)), report.message().to_owned())
            }
            ErrorKind::CircularExtend { tpl, inheritance_chain } => {
                let parent = inheritance_chain.first().map_or(tpl.as_str(), String::as_str);
                (naming(tpl, "extends", parent), error.to_string())
            }
            ErrorKind::CircularInclude { tpl, include_chain } => {
                let mut behind = include_chain.iter().skip_while(|name| *name != tpl).skip(1);
                let included = behind.next().map_or(tpl.as_str(), String::as_str);
                (naming(tpl, "include", included), error.to_string())
            }
            ErrorKind::MissingParent { current, parent } => (naming(current, "extends", parent), error.to_string()),
            _ => {
                let text = error.to_string();
                match (reported(&text), sources.component(&text)) {
                    (Some((name, line, column, message)), _) => (place(&name, Some((line, column))), message),
                    (None, Some((name, component))) => (naming(name, "component", component), text),
                    (None, None) => (template.and_then(|name| place(name, None)), text),
                }
            }
        };
        Self { place, message }
    }
}

/// The place that is told only in the text of an error, as a report of several lines: `error: <message>`, and below
/// it `--> <template>:<line>:<column>`.
fn reported(text: &str) -> Option<(String, usize, usize, String)> {
    let mut lines = text.lines();
    let message = lines.next()?.trim_start_matches("error: ").to_owned();
    let place = lines.find_map(|line| line.trim_start().strip_prefix("--> "))?;
    let (rest, column) = place.rsplit_once(':')?;
    let (name, line) = rest.rsplit_once(':')?;
    Some((name.to_owned(), line.parse().ok()?, column.parse().ok()?, message))
}

/// A mistake of the generator: two of its files have one name.
impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        Self {
            place: None,
            message: refused.to_string(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some((template, Some((line, column)))) => write!(f, "template {template}:{line}:{column}: ")?,
            Some((template, None)) => write!(f, "template {template}: ")?,
            None => {}
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl fmt::Debug for Error {
    /// As people read it: a `main` that ends with `?` prints it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
