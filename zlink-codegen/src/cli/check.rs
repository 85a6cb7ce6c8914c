//! `check`: all findings of all schemas, and every difference from their locks.
//!
//! It must not know single rules.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::{Console, Format, number, paths};
use crate::compile::{Disk, Program, Together};

pub(super) fn run(args: &[PathBuf], locked: bool, format: Format, console: &mut Console<'_>) -> u8 {
    let mut program = Program::new(&Disk);
    let mut together = Together::default();
    let mut compared = BTreeSet::new();
    let files = paths::schemas(args, &mut program);
    for path in &files {
        let Some((root, schema)) = together.add(&mut program, path) else {
            continue;
        };
        for (namespace, file) in program.closure(root).into_iter().enumerate() {
            // One that several schemas import has one lock.
            if compared.insert(file) {
                program.check_lock(&schema, namespace, file, locked);
            }
        }
    }
    let findings = program.finish();
    let code = console.show(&findings, format);
    if format == Format::Human {
        console.summary(&format!("checked {}", number(files.len(), "schema")), &findings);
    }
    code
}
