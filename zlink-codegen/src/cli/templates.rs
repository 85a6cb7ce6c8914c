//! A folder of templates of one's own.
//!
//! It must not know which languages have templates, or of what name.

use std::path::{Path, PathBuf};

use crate::backend::tera::Own;

/// What a template's file is called.
const SUFFIX: &str = ".tera";

/// Every template below `folder`, by rising name. Links to folders are not followed.
pub(super) fn read(folder: &Path) -> Result<Vec<Own>, String> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(below) = folders.pop() {
        let here = folder.join(&below);
        let cannot = |error: std::io::Error| format!("the templates cannot be read: {}: {error}", here.display());
        for entry in std::fs::read_dir(&here).map_err(cannot)? {
            let entry = entry.map_err(cannot)?;
            let path = below.join(entry.file_name());
            if entry.file_type().map_err(cannot)?.is_dir() {
                folders.push(path);
                continue;
            }
            let Some(name) = path.to_str().filter(|name| name.ends_with(SUFFIX)) else {
                continue;
            };
            let text = std::fs::read_to_string(entry.path())
                .map_err(|error| format!("template {} cannot be read: {error}", entry.path().display()))?;
            found.push(Own {
                name: name.replace('\\', "/"),
                shown: entry.path().display().to_string(),
                text,
            });
        }
    }
    if found.is_empty() {
        return Err(format!("there is no template, *{SUFFIX}, below {}", folder.display()));
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}
