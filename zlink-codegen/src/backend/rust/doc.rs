//! Doc comments: the schema's text, or a sentence where it has none, as rustdoc reads it without running it.

use std::fmt::Display;

use super::text::Text;
use crate::ir::{Doc, Namespace};

/// The doc of a namespace, after `mark`.
pub(super) fn namespace(text: &mut Text, mark: &str, namespace: &Namespace) {
    for line in read(&namespace.doc).unwrap_or_else(|| vec![format!(" The namespace `{}`.", namespace.name)]) {
        text.line(format_args!("{mark}{line}"));
    }
}

/// The doc of an item.
pub(super) fn lines(text: &mut Text, doc: &Doc, otherwise: impl Display) {
    match read(doc) {
        Some(lines) => lines.iter().for_each(|line| text.line(format_args!("///{line}"))),
        None => text.line(format_args!("/// {otherwise}")),
    }
}

/// The doc of a part, where it has one.
pub(super) fn given(text: &mut Text, doc: &Doc) {
    read(doc)
        .into_iter()
        .flatten()
        .for_each(|line| text.line(format_args!("///{line}")));
}

/// The lines of a doc, each with the space that follows the comment's slashes.
fn read(doc: &Doc) -> Option<Vec<String>> {
    let text = doc.0.as_deref().filter(|text| !text.trim().is_empty())?;
    let mut fences = Fences::default();
    text.trim_end().lines().for_each(|line| fences.line(line));
    fences.end();
    Some(fences.out)
}

/// Keeps code in docs from becoming a test: what has no language is marked as text.
#[derive(Default)]
struct Fences {
    out: Vec<String>,
    /// The fence that ends the block at hand.
    open: Option<String>,
    /// Inside a block that is code by its indentation only; the blank lines at its end so far.
    indented: Option<usize>,
    /// Whether indentation continues a list.
    list: bool,
}

impl Fences {
    fn push(&mut self, line: &str) {
        // A control character in a doc comment is an error to rustc (a lone carriage return) or a nuisance.
        let line: String = line
            .chars()
            .map(|c| if c.is_control() && c != '\t' { ' ' } else { c })
            .collect();
        let line = line.trim_end();
        self.out.push(if line.is_empty() {
            String::new()
        } else {
            format!(" {line}")
        });
    }

    fn line(&mut self, line: &str) {
        let bare = line.trim_start();
        let indent: usize = line
            .chars()
            .take_while(|c| c.is_whitespace())
            .map(|c| if c == '\t' { 4 } else { 1 })
            .sum();
        if let Some(fence) = &self.open {
            if indent < 4
                && bare.trim_end().len() >= fence.len()
                && bare.trim_end().bytes().all(|b| fence.as_bytes().first() == Some(&b))
            {
                self.open = None;
            }
            return self.push(line);
        }
        if let Some(blank) = self.indented {
            if bare.is_empty() {
                self.indented = Some(blank + 1);
                return self.push("");
            }
            if indent >= 4 {
                self.indented = Some(0);
                return self.push(line);
            }
            self.close_indented(blank);
        }
        let after_blank = self.out.last().is_none_or(String::is_empty);
        let fence = ["`", "~"].map(|mark| bare.len() - bare.trim_start_matches(mark).len());
        if let Some((count, mark)) = fence.into_iter().zip(["`", "~"]).find(|(count, _)| *count >= 3) {
            self.open = Some(mark.repeat(count));
            let bare_fence = bare.trim_end().len() == count;
            return self.push(&if bare_fence {
                format!("{}text", line.trim_end())
            } else {
                line.to_owned()
            });
        }
        if indent >= 4 && after_blank && !self.list && !bare.is_empty() {
            self.indented = Some(0);
            self.push("```text");
            return self.push(line);
        }
        let item = bare
            .trim_start_matches(|c: char| c.is_ascii_digit())
            .starts_with(['-', '*', '+', '.', ')']);
        if item {
            self.list = true;
        } else if indent == 0 && !bare.is_empty() && after_blank {
            self.list = false;
        }
        self.push(line);
    }

    fn close_indented(&mut self, blank: usize) {
        self.indented = None;
        let end = self.out.len().saturating_sub(blank);
        self.out.insert(end, " ```".to_owned());
    }

    fn end(&mut self) {
        if let Some(blank) = self.indented {
            self.close_indented(blank);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doc(text: &str) -> String {
        read(&Doc(Some(text.to_owned()))).unwrap_or_default().join("\n")
    }

    #[test]
    fn code_without_a_language_is_text() {
        assert_eq!(doc("a\n```\nx\n```\nb"), " a\n ```text\n x\n ```\n b");
        assert_eq!(doc("~~~~\nx\n~~~\n~~~~"), " ~~~~text\n x\n ~~~\n ~~~~");
        assert_eq!(doc("```rust\nx\n```"), " ```rust\n x\n ```");
        assert_eq!(
            doc("a\n\n    code\n\n    more\n\nb"),
            " a\n\n ```text\n     code\n\n     more\n ```\n\n b"
        );
        assert_eq!(doc("    code"), " ```text\n     code\n ```");
    }

    #[test]
    fn lists_keep_their_indentation() {
        for text in [" - a\n\n     more\n - b", " 1. a\n\n     more"] {
            let written: Vec<&str> = text
                .lines()
                .map(|line| line.strip_prefix(' ').unwrap_or(line))
                .collect();
            assert_eq!(doc(&written.join("\n")), text);
        }
    }

    #[test]
    fn an_empty_doc_is_none() {
        assert_eq!(read(&Doc(None)), None);
        assert_eq!(read(&Doc(Some(" \n".into()))), None);
        assert_eq!(doc("a\rb"), " a b");
    }
}
