//! `fmt`: the text of schemas in the one form, and ids for fields that have none.
//!
//! It must not know that form.

use std::path::PathBuf;

use super::{Console, FINDINGS, FINE, Format, TROUBLE, number, paths};
use crate::compile::{Disk, Program};
use crate::output::write_if_changed;

pub(super) fn run(args: &[PathBuf], assign: bool, check: bool, console: &mut Console<'_>) -> u8 {
    let mut program = Program::new(&Disk);
    let files = paths::schemas(args, &mut program);
    let mut changed = Vec::new();
    for path in &files {
        changed.extend(program.format(path, assign).map(|text| (path, text)));
    }
    let findings = program.finish();
    let mut code = console.show(&findings, Format::Human);
    let (verb, done) = if check {
        ("would change", "would be changed")
    } else {
        ("formatted", "changed")
    };
    for (path, text) in &changed {
        let written = if check {
            Ok(true)
        } else {
            write_if_changed(path, text.as_bytes())
        };
        match written {
            Ok(_) => console.say(format_args!("{verb} {}", path.display())),
            Err(error) => {
                console.say(format_args!("error: {error}"));
                code = TROUBLE;
            }
        }
    }
    console.summary(
        &format!("{} of {} {done}", changed.len(), number(files.len(), "schema")),
        &findings,
    );
    if check && !changed.is_empty() && code == FINE {
        FINDINGS
    } else {
        code
    }
}
