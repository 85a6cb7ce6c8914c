//! Text of schemas in Markdown: nothing in it can break a table, or swallow what follows.
//!
//! It must not know what the text is about.

use crate::ir::Doc;

/// A doc as lines of a quotation: a fence that is left open in it ends with it.
pub(super) fn quoted(doc: &Doc) -> Vec<String> {
    let text = doc.0.as_deref().unwrap_or_default().trim();
    text.lines()
        .map(|line| format!("> {}", clean(line)).trim_end().to_owned())
        .collect()
}

/// A doc in one cell of a table.
pub(super) fn cell(doc: &Doc) -> String {
    let text = doc.0.as_deref().unwrap_or_default().trim();
    let words: Vec<String> = text
        .lines()
        .map(|line| clean(line).trim().replace('|', "\\|"))
        .collect();
    words.join(" ").trim().to_owned()
}

/// The first line of a doc, in a cell.
pub(super) fn first(doc: &Doc) -> String {
    let first = doc
        .0
        .as_deref()
        .unwrap_or_default()
        .trim()
        .lines()
        .next()
        .unwrap_or_default();
    cell(&Doc(Some(first.to_owned())))
}

/// A text that is shown as it is, in a cell: a packet name may hold anything but NUL.
pub(super) fn code(text: &str) -> String {
    let ticks = text.split(|c| c != '`').map(str::len).max().unwrap_or_default() + 1;
    let fence = "`".repeat(ticks);
    let pad = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{fence}{pad}{}{pad}{fence}", clean(text).replace('|', "\\|"))
}

fn clean(line: &str) -> String {
    line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_ends_its_cell_or_its_quotation() {
        let doc = Doc(Some("a | b\r\n\n```\nfence\n".to_owned()));
        assert_eq!(cell(&doc), "a \\| b  ``` fence");
        assert_eq!(quoted(&doc), ["> a | b", ">", "> ```", "> fence"]);
        assert_eq!(first(&doc), "a \\| b");
        assert_eq!(code("a`|``"), "``` a`\\|`` ```");
    }
}
