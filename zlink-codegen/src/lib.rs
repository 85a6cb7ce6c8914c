//! Compiles zlink schemas into typed clients, handler traits and FlatBuffers codecs.
//!
//! A package that uses schemas needs one line in its `build.rs`, and finds the code with
//! `zlink_runtime::include_schema!`:
//!
//! ```no_run
//! zlink_codegen::compile("schemas/billing.yaml");
//! ```
//!
//! A tool of its own loads a schema, looks at its [meaning](ir::Schema), and gives it to a [back end](backend):
//!
//! ```
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../schemas/billing.yaml");
//! match zlink_codegen::load(path) {
//!     Ok(schema) => {
//!         let files = zlink_codegen::backend::rust::modules(&schema, &Default::default())?;
//!         assert!(files.iter().count() > 0);
//!     }
//!     // All mistakes of all files, as `zlink-codegen check` shows them.
//!     Err(findings) => panic!("{}", findings.human(false)),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod backend;
#[cfg(feature = "cli")]
pub mod cli;
mod compile;
pub mod diagnostic;
mod evolution;
#[cfg(feature = "cli")]
mod format;
pub mod ir;
mod lint;
mod load;
pub mod name;
pub mod output;
mod resolve;
pub mod source;
mod syntax;

#[doc(hidden)]
pub use compile::fuzz_load;
pub use compile::{compile, load};
