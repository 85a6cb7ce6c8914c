//! `schema`: the language as a JSON Schema, for editors.
//!
//! It says what can be said of one file and one place at a time; that names exist and ids fit together, `check` says.

use super::{Console, FINE, TROUBLE};

const SCHEMA: &str = include_str!("schema/zlink.schema.json");

pub(super) fn run(console: &mut Console<'_>) -> u8 {
    if console.out.write_all(SCHEMA.as_bytes()).is_ok() {
        FINE
    } else {
        TROUBLE
    }
}
