//! The files of a run and the spans into them.
//!
//! It must not know what the text means, nor where it came from beyond a path to show.

use std::path::{Path, PathBuf};

/// A file of a [`Sources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(u32);

/// A range of bytes in one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

impl Span {
    /// A part of this span, from `start` to `end` bytes after its beginning, never beyond its end.
    #[must_use]
    pub fn part(self, start: usize, end: usize) -> Span {
        let clamp = |offset: usize| {
            let offset = u32::try_from(offset).unwrap_or(u32::MAX);
            self.start.saturating_add(offset).min(self.end)
        };
        Span {
            file: self.file,
            start: clamp(start),
            end: clamp(end),
        }
    }
}

/// A place as people count it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// One file.
#[derive(Clone, Debug)]
pub struct Source {
    path: PathBuf,
    text: String,
    lines: Vec<u32>,
}

impl Source {
    /// The path as it is shown.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The text; empty where the file could not be read.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text of a span, or nothing where the span does not fit this text.
    #[must_use]
    pub fn slice(&self, span: Span) -> &str {
        self.text
            .get(span.start as usize..span.end as usize)
            .unwrap_or_default()
    }

    /// Where the byte `offset` stands.
    #[must_use]
    pub fn position(&self, offset: u32) -> Position {
        let line = self.lines.partition_point(|start| *start <= offset).max(1);
        let start = self.line_start(line) as usize;
        let mut offset = (offset as usize).min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let column = self.text.get(start..offset).map_or(0, |before| before.chars().count());
        Position {
            line,
            column: column + 1,
        }
    }

    /// The first byte of a line that is counted from 1.
    #[must_use]
    pub fn line_start(&self, line: usize) -> u32 {
        self.lines.get(line.saturating_sub(1)).copied().unwrap_or_default()
    }

    /// The byte after the last of a line, its line break excluded.
    #[must_use]
    pub fn line_end(&self, line: usize) -> u32 {
        let end = self.lines.get(line).map_or(self.text.len(), |next| *next as usize);
        let line = self.text.get(self.line_start(line) as usize..end).unwrap_or_default();
        let breaks = line.len() - line.trim_end_matches(['\r', '\n']).len();
        u32::try_from(end - breaks).unwrap_or(u32::MAX)
    }
}

/// The first byte of each line. A line of YAML ends with LF, CR LF, or CR alone.
///
/// Build scripts run unoptimised, where a loop over an index is ten times as fast as iterators.
fn line_starts(text: &[u8]) -> Vec<u32> {
    let mut lines = vec![0];
    let mut at = 0;
    while at < text.len() {
        let byte = text[at];
        at += 1;
        if byte == b'\n' || byte == b'\r' && text.get(at) != Some(&b'\n') {
            lines.push(u32::try_from(at).unwrap_or(u32::MAX));
        }
    }
    lines
}

/// All files of a run.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<Source>,
}

impl Sources {
    /// Adds a file. Texts are bounded by `load`, far below 4 GiB.
    pub fn add(&mut self, path: impl Into<PathBuf>, text: impl Into<String>) -> FileId {
        let text = text.into();
        let lines = line_starts(text.as_bytes());
        let id = FileId(u32::try_from(self.files.len()).unwrap_or(u32::MAX));
        self.files.push(Source {
            path: path.into(),
            text,
            lines,
        });
        id
    }

    /// The file of an id that this value handed out.
    #[must_use]
    pub fn get(&self, id: FileId) -> Option<&Source> {
        self.files.get(id.0 as usize)
    }

    /// The text of a span.
    #[must_use]
    pub fn slice(&self, span: Span) -> &str {
        self.get(span.file).map_or("", |source| source.slice(span))
    }

    /// The span before the first byte of a file.
    #[must_use]
    pub fn top(file: FileId) -> Span {
        Span { file, start: 0, end: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters() {
        let mut sources = Sources::default();
        let id = sources.add("a.yaml", "äb\r\ncd\n");
        let source = sources.get(id).expect("just added");
        assert_eq!(source.position(0), Position { line: 1, column: 1 });
        assert_eq!(source.position(2), Position { line: 1, column: 2 });
        assert_eq!(
            source.position(1),
            Position { line: 1, column: 1 },
            "inside a character"
        );
        assert_eq!(source.position(6), Position { line: 2, column: 2 });
        assert_eq!(source.position(900), Position { line: 3, column: 1 });
        assert_eq!((source.line_start(1), source.line_end(1)), (0, 3));
        assert_eq!((source.line_start(2), source.line_end(2)), (5, 7));
    }

    #[test]
    fn a_carriage_return_alone_ends_a_line() {
        let mut sources = Sources::default();
        let id = sources.add("a.yaml", "a\rb\r\r\nc\r");
        let source = sources.get(id).expect("just added");
        let starts: Vec<_> = (1..=5).map(|line| source.line_start(line)).collect();
        assert_eq!(starts, [0, 2, 4, 6, 8]);
        assert_eq!(source.position(6), Position { line: 4, column: 1 });
    }
}
