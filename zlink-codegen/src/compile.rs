//! The order of phases, for build scripts and for the command.
//!
//! Here, and in `cli`, is the only place with files. It must not know how a phase does its work.

mod build;
#[cfg(feature = "cli")]
mod formatted;
mod locks;
mod memory;
mod program;
#[cfg(feature = "cli")]
mod together;
#[cfg(feature = "cli")]
mod versions;

use std::path::Path;

pub(crate) use program::{Disk, Program};
#[cfg(feature = "cli")]
pub(crate) use program::{Files, is_schema};
#[cfg(feature = "cli")]
pub(crate) use together::Together;
#[cfg(feature = "cli")]
pub(crate) use versions::Version;

pub use build::compile;
pub use memory::fuzz_load;

use crate::diagnostic::Diagnostics;
use crate::ir;

/// Loads a schema with all it imports.
///
/// # Errors
/// Every mistake of every file, where there is any. Warnings alone are not returned; `zlink-codegen check` shows them.
pub fn load(path: impl AsRef<Path>) -> Result<ir::Schema, Diagnostics> {
    let mut program = Program::new(&Disk);
    let schema = program.load(path.as_ref()).and_then(|root| program.resolve(root));
    schema.ok_or_else(|| program.finish())
}
