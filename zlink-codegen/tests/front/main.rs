//! The front end: from text to meaning, to findings, to locks; and the command around it.

#![allow(missing_docs, clippy::panic, reason = "a test fails by panicking")]

mod invalid;
mod meaning;
