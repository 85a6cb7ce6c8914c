//! What a build script calls. It speaks to cargo in lines, writes to `OUT_DIR`, and never panics.
//!
//! It must not know what is generated.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::{Disk, Program};
use crate::backend;
use crate::diagnostic::{Diagnostics, Severity};
use crate::ir::Schema;
use crate::output::write_if_changed;

/// Compiles a schema, and what it imports, to Rust. Call it from `build.rs`; the path is relative to the package.
///
/// The code goes to `OUT_DIR/<namespace>.rs`, where `zlink_runtime::include_schema!("<namespace>")` finds it. What is
/// wrong with a schema fails the build with its place and the line in question. A namespace is compared with its lock
/// file where it has one; nothing but `OUT_DIR` is written.
pub fn compile(schema: impl AsRef<Path>) {
    let mut text = String::new();
    for line in lines(schema.as_ref(), std::env::var_os("OUT_DIR")) {
        text.push_str(&line);
        text.push('\n');
    }
    // Where cargo does not listen any more, there is nobody to tell.
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// The lines for cargo.
fn lines(path: &Path, out: Option<OsString>) -> Vec<String> {
    let mut program = Program::new(&Disk);
    let root = program.load(path);
    let schema = root.and_then(|root| program.resolve(root));
    let mut watched: BTreeSet<PathBuf> = program.paths().iter().cloned().collect();
    if let (Some(schema), Some(root)) = (&schema, root) {
        for (namespace, file) in program.closure(root).into_iter().enumerate() {
            let Some(checked) = program.check_lock(schema, namespace, file, false) else {
                continue;
            };
            // Cargo would run the script in every build for a file that is missing. `accept`, which makes it, touches the
            // schema.
            if checked.exists {
                watched.insert(checked.path);
            }
        }
    }
    let findings = program.finish();
    let watched = watched
        .iter()
        .map(|path| path.display().to_string())
        .filter(|path| !path.contains(['\n', '\r']));
    let mut lines: Vec<String> = watched.map(|path| format!("cargo::rerun-if-changed={path}")).collect();
    say(&findings, &mut lines);
    if let Some(schema) = schema.filter(|_| !findings.has_errors())
        && let Err(error) = write(&schema, out)
    {
        lines.push(format!("cargo::error={}", error.replace(['\n', '\r'], " ")));
    }
    lines
}

/// Errors and warnings with their source lines, each line by itself: cargo shows nothing else of a script. Notes in one.
fn say(findings: &Diagnostics, lines: &mut Vec<String>) {
    for item in &findings.items {
        let key = if item.severity == Severity::Error {
            "error"
        } else {
            "warning"
        };
        if item.severity == Severity::Note {
            let place = findings
                .sources
                .get(item.span.file)
                .map(|source| source.path().display().to_string());
            let text = format!(
                "{}: note[{}]: {}",
                place.unwrap_or_default(),
                item.code.as_str(),
                item.message
            );
            lines.push(format!("cargo::{key}={}", text.replace(['\n', '\r'], " ")));
            continue;
        }
        let text = findings.render(item);
        lines.extend(
            text.lines()
                .map(|line| format!("cargo::{key}={}", line.replace('\r', " "))),
        );
    }
}

fn write(schema: &Schema, out: Option<OsString>) -> Result<(), String> {
    let Some(out) = out else {
        return Err("zlink_codegen::compile belongs into a build script: OUT_DIR is not set".to_owned());
    };
    let code = backend::rust::include(schema, &backend::rust::Options::default())
        .map_err(|bug| format!("this is a bug of zlink-codegen: {bug}"))?;
    let path = Path::new(&out).join(format!("{}.rs", schema.root().name));
    write_if_changed(&path, code.as_bytes()).map_err(|error| format!("the code cannot be written: {error}"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that is watched makes cargo run the script for anything below it: beside a package's manifest that is
    /// also what the build itself writes, and the script would run in every build.
    #[test]
    fn only_files_are_watched_that_are_there() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let schema = dir.path().join("shop.yaml");
        std::fs::write(&schema, "zlink: 1\nnamespace: shop\nversion: 1\nmessages: { A: {} }\n").expect("writable");
        let out = dir.path().join("out");
        let watched = |lines: Vec<String>| -> Vec<String> {
            let watched = lines
                .iter()
                .filter_map(|line| line.strip_prefix("cargo::rerun-if-changed="));
            watched.map(str::to_owned).collect()
        };
        let schema_line = schema.display().to_string();
        assert_eq!(
            watched(lines(&schema, Some(out.clone().into()))),
            std::slice::from_ref(&schema_line)
        );
        let lock = dir.path().join("shop.lock.yaml");
        std::fs::write(&lock, "lock: 1\n").expect("writable");
        assert_eq!(
            watched(lines(&schema, Some(out.into()))),
            [lock.display().to_string(), schema_line]
        );
    }
}
