//! From arguments to schema files.
//!
//! It must not know what is in the files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::compile::{Program, is_schema};

/// The schemas that `paths` mean, each once, sorted within a folder. What cannot be read is reported, and does not
/// hide the others.
pub(super) fn schemas(paths: &[PathBuf], program: &mut Program<'_>) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut seen = BTreeSet::new();
    for path in paths {
        let mut found = BTreeSet::new();
        if path.is_dir() {
            walk(path, &mut found, program);
            if found.is_empty() {
                program.unreadable(path, "there is no schema below this folder");
            }
        } else {
            found.insert(path.clone());
        }
        files.extend(found.into_iter().filter(|file| seen.insert(file.clone())));
    }
    files
}

fn walk(folder: &Path, found: &mut BTreeSet<PathBuf>, program: &mut Program<'_>) {
    // With a list of its own, no depth of folders is too deep. Links to folders are not followed: they may lead round.
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) => {
                program.unreadable(&folder, &format!("the folder cannot be read: {error}"));
                continue;
            }
        };
        for entry in entries {
            match entry.and_then(|entry| Ok((entry.file_type()?, entry.path()))) {
                Ok((kind, path)) if kind.is_dir() => folders.push(path),
                Ok((_, path)) if is_schema(&path) => {
                    found.insert(path);
                }
                Ok(_) => {}
                Err(error) => program.unreadable(&folder, &format!("the folder cannot be read: {error}")),
            }
        }
    }
}
