//! `accept`: writes the lock files of the schemas that were named.
//!
//! It must not know what a lock says.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{Console, Format, TROUBLE, number, paths};
use crate::compile::{Disk, Program, Together};
use crate::diagnostic::Code;
use crate::output::write_if_changed;

pub(super) fn run(args: &[PathBuf], console: &mut Console<'_>) -> u8 {
    let mut program = Program::new(&Disk);
    let mut together = Together::default();
    let files = paths::schemas(args, &mut program);
    let mut locks = Vec::new();
    for path in &files {
        let Some((root, schema)) = together.add(&mut program, path) else {
            continue;
        };
        if let Some(checked) = program.check_lock(&schema, schema.namespaces.len() - 1, root, false)
            && let Some(text) = checked.accepted
        {
            locks.push((checked.path, text, (!checked.exists).then_some(path)));
        }
    }
    // What is right is written even where another schema is not: each lock is one namespace. But only the locks of before
    // tell that a state has to be raised for what it holds of another one.
    let mut findings = program.finish();
    if findings.items.iter().any(|item| item.code == Code::StateNotRaised) {
        locks.clear();
    }
    let mut written = Vec::new();
    let mut trouble = Vec::new();
    let accepted = locks.len();
    for (path, text, is_new_of) in locks {
        match write_if_changed(&path, text.as_bytes()) {
            Ok(true) => {
                is_new_of.into_iter().for_each(|schema| touch(schema));
                written.push(path);
            }
            Ok(false) => {}
            Err(error) => trouble.push(error),
        }
    }
    // That there was no lock is what this command is for.
    findings.items.retain(|item| item.code != Code::NoLock);
    let code = console.show(&findings, Format::Human);
    for path in &written {
        console.say(format_args!("wrote {}", path.display()));
    }
    for error in &trouble {
        console.say(format_args!("error: {error}"));
    }
    console.summary(
        &format!("accepted {accepted} of {}", number(files.len(), "schema")),
        &findings,
    );
    if trouble.is_empty() { code } else { TROUBLE }
}

/// Makes a schema look changed: builds watch no lock that is missing, and are to see that there is one now.
fn touch(schema: &Path) {
    let file = File::options().append(true).open(schema);
    // Where that cannot be, they see it with the next change.
    let _ = file.and_then(|file| file.set_modified(SystemTime::now()));
}
