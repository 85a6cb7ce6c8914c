//! The front end: from text to meaning, to findings, to locks; and the command around it.

#![allow(missing_docs, clippy::panic, reason = "a test fails by panicking")]

mod breaking;
mod build_script;
mod command;
mod evolution;
mod explain;
mod format;
mod hostile;
mod init;
mod invalid;
mod meaning;
mod mutation;
mod room;
mod schema;
