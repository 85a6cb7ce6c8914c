//! Where a call goes: which member of a channel takes it.
//!
//! It must not know how a record travels, or what runs at its target.

pub(crate) mod cache;
pub(crate) mod select;
