//! How a contract may change: the lock file remembers it, a comparison tells what a change breaks.
//!
//! It must not know YAML text of schemas, spans or files; it gets one meaning and compares it with another.

mod compare;
mod contract;
mod data;
mod fields;
mod lock;
mod objects;
mod packets;
mod shape;
mod state;
mod write;

pub(crate) use compare::{Change, compare_beside, needs_version};
pub(crate) use contract::Contract;
pub(crate) use lock::{damaged, read};
pub(crate) use write::write;
