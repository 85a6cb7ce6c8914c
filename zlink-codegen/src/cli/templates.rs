//! A folder of templates of one's own.
//!
//! It must not know which languages have templates, or of what name.

use std::path::{Path, PathBuf};

use crate::backend::tera::{BuiltIn, Own, SUFFIX};

/// Every template below `folder`, by rising name. Links to folders are not followed. A file that has the name of a
/// `built_in` one but for its ending would be for nothing.
pub(super) fn read(folder: &Path, built_in: BuiltIn) -> Result<Vec<Own>, String> {
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
            let shown = entry.path().display().to_string();
            let Some(name) = path.to_str().filter(|name| name.ends_with(SUFFIX)) else {
                let template = format!("{}{SUFFIX}", path.display()).replace('\\', "/");
                if built_in.iter().any(|(name, _)| *name == template) {
                    return Err(format!(
                        "{shown} is no template; {template} would be one of this language"
                    ));
                }
                continue;
            };
            let bytes =
                std::fs::read(entry.path()).map_err(|error| format!("template {shown} cannot be read: {error}"))?;
            let text = String::from_utf8(bytes).map_err(|error| {
                let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
                let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
                format!("template {shown}:{line}: this is not UTF-8")
            })?;
            found.push(Own {
                name: name.replace('\\', "/"),
                shown,
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
