//! The table of changes: its rows, and the schemas that they are together or each alone.
//!
//! It must not know what a change means. The test that generates the two modules reads it too.

/// One change.
#[derive(Debug)]
pub(crate) struct Row {
    /// Its name.
    pub(crate) name: &'static str,
    /// The rules that it falls under, sorted.
    pub(crate) rules: Vec<&'static str>,
    /// Each declaration as its mark, its section, and its text.
    lines: Vec<(char, &'static str, &'static str)>,
}

/// One of the two versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The older one.
    Before,
    /// The newer one.
    After,
}

impl Row {
    /// Whether something in that section of a schema changes.
    pub(crate) fn changes(&self, section: &str) -> bool {
        self.lines.iter().any(|(mark, of, _)| *mark != ' ' && *of == section)
    }
}

/// All changes.
pub(crate) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for line in include_str!("table.txt").lines() {
        let Some((mark, text)) = line.split_at_checked(2) else {
            continue;
        };
        match mark {
            "= " => {
                let mut words = text.split_whitespace();
                let name = words.next().expect("a name");
                let mut rules: Vec<_> = words.collect();
                rules.sort_unstable();
                rows.push(Row {
                    name,
                    rules,
                    lines: Vec::new(),
                });
            }
            "- " | "+ " | "  " => {
                let row = rows.last_mut().expect("a name before its lines");
                let (section, text) = text.trim().split_once(' ').expect("a section, and a declaration in it");
                row.lines.push((mark.chars().next().expect("a mark"), section, text));
            }
            _ => {}
        }
    }
    rows
}

/// The schema that one side of some rows is.
pub(crate) fn schema<'r>(rows: impl IntoIterator<Item = &'r Row>, side: Side) -> String {
    let other = if side == Side::Before { '+' } else { '-' };
    let lines: Vec<_> = rows
        .into_iter()
        .flat_map(|row| &row.lines)
        .filter(|(mark, ..)| *mark != other)
        .collect();
    let mut text = String::from("zlink: 1\nnamespace: changes\nversion: 1\n");
    for section in [
        "metadata", "enums", "structs", "unions", "messages", "services", "fanouts", "spots",
    ] {
        let mut of_section = lines.iter().filter(|(_, name, _)| *name == section).peekable();
        if of_section.peek().is_some() {
            text.push_str(&format!("{section}:\n"));
        }
        for (_, _, line) in of_section {
            text.push_str(&format!("  {line}\n"));
        }
    }
    text
}
