//! Bytes to text: size, encoding, control characters.
//!
//! It must not know YAML.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::diagnostic::{Code, Diagnostic};
use crate::source::{FileId, Sources, Span};

/// The largest file. A schema of 1,000 messages has about half a megabyte.
pub(crate) const MAX_BYTES: usize = 4 << 20;

/// Reads a regular file, at most one byte more than [`MAX_BYTES`], so that [`to_text`] sees that it is too large.
pub(crate) fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let kind = std::fs::metadata(path)?;
    if !kind.is_file() {
        // A pipe would keep us waiting as soon as it is opened; a device may never end.
        let what = if kind.is_dir() {
            "is a folder"
        } else {
            "is not a regular file"
        };
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    bounded(File::open(path)?)
}

/// The same for what is no file.
pub(crate) fn bounded(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The text of a file, or why it has none. A byte order mark at the start is dropped.
///
/// The file is added to `sources` in any case, for findings to point to.
pub(crate) fn to_text(sources: &mut Sources, path: &Path, bytes: Vec<u8>) -> (FileId, Result<(), Diagnostic>) {
    if bytes.len() > MAX_BYTES {
        let file = sources.add(path, "");
        let message = format!("the file is larger than {} MiB", MAX_BYTES >> 20);
        let item = Diagnostic::new(Code::TooLarge, Sources::top(file), message)
            .help("split the schema: one namespace per file, joined by `imports`");
        return (file, Err(item));
    }
    match String::from_utf8(bytes) {
        Ok(mut text) => {
            if text.starts_with('\u{feff}') {
                text.drain(..'\u{feff}'.len_utf8());
            }
            let bad = control(&text);
            let file = sources.add(path, text);
            let result = bad.map_or(Ok(()), |(at, c)| {
                let span = span(file, at, c.len_utf8());
                Err(Diagnostic::new(
                    Code::ControlCharacter,
                    span,
                    format!("the file holds the control character U+{:04X}", u32::from(c)),
                )
                .help("remove it; a text that needs it can write it as an escape in double quotes"))
            });
            (file, result)
        }
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            // What is valid is enough to show the place.
            let bytes = error.into_bytes();
            let valid = bytes.get(..at).unwrap_or_default();
            let file = sources.add(path, String::from_utf8_lossy(valid));
            let item = Diagnostic::new(
                Code::NotUtf8,
                span(file, at, 0),
                format!("the file is not UTF-8 from byte {at} on"),
            )
            .help("save it as UTF-8");
            (file, Err(item))
        }
    }
}

/// The first control character that no text of a schema has.
fn control(text: &str) -> Option<(usize, char)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    // Almost every byte is printable ASCII; as for `Sources::add`, iterators would cost ten times as much.
    while at < bytes.len() {
        let byte = bytes[at];
        if byte < 0x20 || byte == 0x7f || byte == 0xc2 {
            let c = text.get(at..).and_then(|rest| rest.chars().next());
            let bad = c.filter(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{85}'));
            if let Some(c) = bad {
                return Some((at, c));
            }
        }
        at += 1;
    }
    None
}

fn span(file: FileId, at: usize, len: usize) -> Span {
    let start = u32::try_from(at).unwrap_or(u32::MAX);
    Span {
        file,
        start,
        end: start.saturating_add(u32::try_from(len).unwrap_or(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_those_of_unicode_but_for_breaks_and_tabs() {
        for number in 0..0x300 {
            let c = char::from_u32(number).expect("no surrogate is among them");
            let bad = c.is_control() && !"\n\r\t\u{85}".contains(c);
            assert_eq!(
                control(&format!("\u{c2}é{c}b")),
                bad.then_some((4, c)),
                "U+{number:04X}"
            );
        }
    }
}
