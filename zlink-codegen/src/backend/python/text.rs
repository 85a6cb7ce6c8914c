//! Text in Python source: docstrings and literals that nothing in a schema can break out of.

use crate::ir::Doc;

/// The lines of a docstring, ready to stand between `"""`; `otherwise` where the schema has no text.
pub(super) fn doc(doc: &Doc, otherwise: &str) -> Vec<String> {
    let text = doc.0.as_deref().map_or(otherwise, str::trim);
    let mut lines: Vec<String> = text.lines().map(escaped).collect();
    // A quotation mark at the very end would join the closing ones.
    if let Some(last) = lines.last_mut().filter(|last| last.ends_with('"')) {
        last.push(' ');
    }
    lines
}

fn escaped(line: &str) -> String {
    let mut escaped = String::with_capacity(line.len());
    for c in line.trim_end().chars() {
        match c {
            '\\' => escaped.push_str("\\\\"),
            '"' if escaped.ends_with('"') => escaped.push_str("\\\""),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{85}') => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

/// A string literal.
pub(super) fn literal(text: &str) -> String {
    let mut literal = String::from("\"");
    for c in text.chars() {
        match c {
            '\\' | '"' => literal.extend(['\\', c]),
            ' '..='~' => literal.push(c),
            c if u32::from(c) <= 0xffff => literal.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => literal.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    literal.push('"');
    literal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_ends_it() {
        let hostile = Doc(Some("a \\ b\n\"\"\" end\nlast \"".to_owned()));
        assert_eq!(doc(&hostile, ""), ["a \\\\ b", "\"\\\"\\\" end", "last \" "]);
        assert_eq!(literal("\"\\\n\u{e9}\u{1f600}"), r#""\"\\\u000a\u00e9\U0001f600""#);
    }
}
