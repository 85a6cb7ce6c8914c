//! Text to a spanned tree, within bounds that a hostile file cannot leave.
//!
//! It knows YAML, and nothing about schemas. Scalars stay text: what `yes` or `1.10` means is for the reader of
//! that value to say.

mod parse;
mod text;
mod tree;

pub(crate) use parse::parse;
#[cfg(feature = "cli")]
pub(crate) use text::bounded;
pub(crate) use text::{read_file, to_text};
pub(crate) use tree::{Entry, Kind, Node, Text};
