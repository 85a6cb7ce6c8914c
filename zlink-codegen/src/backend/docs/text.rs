//! Text of schemas in Markdown: nothing in it can break a table, or swallow what follows.
//!
//! It must not know what the text is about.

use crate::ir::Doc;

/// A doc as lines of a quotation: a fence that is left open in it ends with it.
pub(super) fn quoted(doc: &Doc) -> Vec<String> {
    let text = doc.0.as_deref().unwrap_or_default().trim();
    let (mut fence, mut spans) = (None, true);
    let mut lines = Vec::new();
    for line in text.lines() {
        let line = clean(line);
        let here = marks(&line);
        let shown = match (fence, here) {
            // Code shows what it holds.
            (Some(open), _) => {
                if here.is_some_and(|(c, count, rest)| closes(open, c, count, rest)) {
                    fence = None;
                }
                line
            }
            (None, Some((c, count, rest))) if c == '~' || !rest.contains('`') => {
                (fence, spans) = (Some((c, count)), true);
                tagless(&line, &mut true)
            }
            (None, _) => {
                spans |= line.trim().is_empty();
                tagless(&line, &mut spans)
            }
        };
        lines.push(format!("> {shown}").trim_end().to_owned());
    }
    lines
}

/// The character and count of a line's first three or more backticks or tildes, and what follows them.
fn marks(line: &str) -> Option<(char, usize, &str)> {
    let c = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let rest = line.trim_start_matches(c);
    let count = line.len() - rest.len();
    (count >= 3).then_some((c, count, rest))
}

fn closes((c, count): (char, usize), by: char, so_many: usize, rest: &str) -> bool {
    c == by && so_many >= count && rest.trim().is_empty()
}

/// A line in which nothing is HTML: `list<string>` is not a tag, and nobody closes a comment. Code between backticks stays,
/// as long as `spans` says that none was left open in the lines before.
fn tagless(line: &str, spans: &mut bool) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(['`', '<']) {
        let (before, here) = rest.split_at(at);
        out.push_str(before);
        let backslashes = out.len() - out.trim_end_matches('\\').len();
        let ticks = here.len() - here.trim_start_matches('`').len();
        let taken = if ticks == 0 {
            out.push_str("&lt;");
            1
        } else if backslashes % 2 == 1 {
            out.push('`');
            1
        } else {
            let end = closing(here, ticks).filter(|_| *spans);
            *spans &= end.is_some();
            out.push_str(here.get(..end.unwrap_or(ticks)).unwrap_or_default());
            end.unwrap_or(ticks)
        };
        rest = here.get(taken..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// Where code that begins with so many backticks ends, behind as many.
fn closing(text: &str, ticks: usize) -> Option<usize> {
    let mut at = ticks;
    loop {
        at += text.get(at..)?.find('`')?;
        let run = text.get(at..)?;
        let count = run.len() - run.trim_start_matches('`').len();
        at += count;
        if count == ticks {
            return Some(at);
        }
    }
}

/// A doc in one cell of a table.
pub(super) fn cell(doc: &Doc) -> String {
    let text = doc.0.as_deref().unwrap_or_default().trim();
    let words: Vec<String> = text.lines().map(|line| clean(line).trim().to_owned()).collect();
    let line = tagless(words.join(" ").trim(), &mut true);
    line.replace('|', "\\|")
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

    #[test]
    fn nothing_in_a_text_is_html_that_hides_itself_or_what_follows() {
        let doc = |text: &str| Doc(Some(text.to_owned()));
        let shown = [
            ("a list<string> <!-- x", "a list&lt;string> &lt;!-- x"),
            ("`list<string>` <b> `` ` <i> ``", "`list<string>` &lt;b> `` ` <i> ``"),
            ("\\`<b>\\` and `<i>", "\\`&lt;b>\\` and `&lt;i>"),
            ("`a\nb` <b> `c", "`a b` &lt;b> `c"),
        ];
        for (text, cell_of_it) in shown {
            assert_eq!(cell(&doc(text)), cell_of_it);
        }
        let quotations = [
            ("<script>\n<!--", "> &lt;script>\n> &lt;!--"),
            ("```rust\nVec<u8>\n```\n<b>", "> ```rust\n> Vec<u8>\n> ```\n> &lt;b>"),
            ("~~~\n```\n<b>\n~~~~\n<i>", "> ~~~\n> ```\n> <b>\n> ~~~~\n> &lt;i>"),
            ("``` a ` b\n<b>", "> ``` a ` b\n> &lt;b>"),
            ("- ```\n  <b>\n  ```\n<i>", "> - ```\n>   &lt;b>\n>   ```\n> &lt;i>"),
            ("`a\nb` <b> `c`\n\n`<i>`", "> `a\n> b` &lt;b> `c`\n>\n> `<i>`"),
        ];
        for (text, quotation) in quotations {
            assert_eq!(quoted(&doc(text)).join("\n"), quotation);
        }
    }
}
