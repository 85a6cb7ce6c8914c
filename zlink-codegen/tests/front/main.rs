//! The front end: from text to meaning.

#![allow(missing_docs, clippy::panic, reason = "a test fails by panicking")]

mod meaning;
