//! Text in TypeScript source: comments and literals that nothing in a schema can break out of.

use crate::ir::Doc;

/// A doc comment, ready to stand behind `indent` spaces; `otherwise` where the schema has no text. Without either, none.
pub(super) fn doc(doc: &Doc, otherwise: &str, indent: usize) -> String {
    let text = doc.0.as_deref().map_or(otherwise, str::trim);
    let lines: Vec<String> = text.lines().map(escaped).collect();
    let margin = format!("\n{}", " ".repeat(indent));
    match lines.as_slice() {
        [] => String::new(),
        [line] => format!("/** {line} */"),
        lines => {
            let line = |line: &String| match line.as_str() {
                "" => format!("{margin} *"),
                line => format!("{margin} * {line}"),
            };
            let lines: String = lines.iter().map(line).collect();
            format!("/**{lines}{margin} */")
        }
    }
}

fn escaped(line: &str) -> String {
    let plain = |c: char| {
        if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') {
            ' '
        } else {
            c
        }
    };
    line.trim_end().replace("*/", "*\\/").chars().map(plain).collect()
}

/// A string literal.
pub(super) fn literal(text: &str) -> String {
    let mut literal = String::from("\"");
    for c in text.chars() {
        match c {
            '\\' | '"' => literal.extend(['\\', c]),
            ' '..='~' => literal.push(c),
            c => literal.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
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
        let hostile = Doc(Some("a */ b\u{2028}c\n\nlast **/".to_owned()));
        assert_eq!(doc(&hostile, "", 1), "/**\n  * a *\\/ b c\n  *\n  * last **\\/\n  */");
        assert_eq!(doc(&Doc(Some("*/".to_owned())), "", 0), "/** *\\/ */");
        assert_eq!(doc(&Doc(None), "", 0), "");
        assert_eq!(literal("\"\\\n\u{e9}\u{1f600}"), r#""\"\\\u{a}\u{e9}\u{1f600}""#);
    }
}
