//! The order of phases, for build scripts and for the command.
//!
//! Here, and in `cli`, is the only place with files. It must not know how a phase does its work.

mod program;

use std::path::Path;

pub(crate) use program::{Disk, Files, Program};

use crate::diagnostic::Diagnostics;
use crate::ir;

/// Loads a schema with all it imports.
///
/// # Errors
/// Every mistake of every file, where there is any.
pub fn load(path: impl AsRef<Path>) -> Result<ir::Schema, Diagnostics> {
    load_from(&Disk, path.as_ref())
}

fn load_from(files: &dyn Files, path: &Path) -> Result<ir::Schema, Diagnostics> {
    let mut program = Program::new(files);
    let schema = program.load(path).and_then(|root| program.resolve(root));
    schema.ok_or_else(|| program.finish())
}
