//! Lines of source text, indented by the blocks they stand in. It must not know Rust beyond its braces.

use std::fmt::{Display, Write};

/// Text under construction.
#[derive(Default)]
pub(super) struct Text {
    out: String,
    depth: usize,
}

impl Text {
    /// One line. What ends with an opening bracket indents what follows; what begins with a closing one does not stand
    /// in the block it ends.
    pub(super) fn line(&mut self, line: impl Display) {
        let start = self.out.len();
        for _ in 0..self.depth {
            self.out.push_str("    ");
        }
        let text = self.out.len();
        // Writing to a string cannot fail.
        let _ = write!(self.out, "{line}");
        let written = self.out[text..].trim_start();
        if written.is_empty() {
            self.out.truncate(start);
        } else if !written.starts_with("//") {
            let closes = written.starts_with(['}', ')']);
            let opens = written.ends_with(['{', '(']);
            if closes && self.depth > 0 {
                self.out.replace_range(start..start + 4, "");
                self.depth -= 1;
            }
            self.depth += usize::from(opens);
        }
        self.out.push('\n');
    }

    pub(super) fn finish(self) -> String {
        self.out
    }
}
