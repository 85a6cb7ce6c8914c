//! Schemas as a commit has them, read through the `git` program.
//!
//! It must not know what is in the files.

use std::io;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

use crate::compile::{Files, is_schema};
use crate::load;

/// One commit of the repository that a path stands in.
pub(super) struct Git {
    /// The top folder of the working tree.
    top: PathBuf,
    /// The commit, as its number: whatever was asked for, it is no option.
    commit: String,
    /// What was asked for.
    revision: String,
}

impl Git {
    /// Finds the repository of `path`, and the commit.
    pub(super) fn open(revision: &str, path: &Path) -> Result<Self, String> {
        let path = absolute(path).map_err(|error| error.to_string())?;
        let folder = path
            .ancestors()
            .find(|folder| folder.is_dir())
            .unwrap_or(Path::new("/"));
        let top = text(folder, &["rev-parse", "--show-toplevel"])?;
        let top = PathBuf::from(top.trim_end_matches(['\n', '\r']));
        let commit = format!("{revision}^{{commit}}");
        let commit = text(&top, &["rev-parse", "--verify", "--quiet", "--end-of-options", &commit])
            .map_err(|_| format!("`{revision}` is no commit, branch or tag of {}", top.display()))?;
        Ok(Self {
            top,
            commit: commit.trim().to_owned(),
            revision: revision.to_owned(),
        })
    }

    /// The schemas that `path`, a file or folder, means in that commit, as paths that [`Files::read`] takes.
    pub(super) fn schemas(&self, path: &Path) -> Result<Vec<PathBuf>, String> {
        let inside = self.inside(path).map_err(|error| error.to_string())?;
        let mut args = vec!["ls-tree", "-r", "-z", "--name-only", "--full-tree", &self.commit];
        if !inside.is_empty() {
            args.extend(["--", &inside]);
        }
        let listed = text(&self.top, &args)?;
        let files = listed
            .split('\0')
            .filter(|file| is_schema(Path::new(file)) || *file == inside && !file.is_empty());
        Ok(files.map(|file| self.top.join(file)).collect())
    }

    /// The way from the top of the repository, with `/`.
    ///
    /// # Errors
    /// Where the path leads out of it.
    pub(super) fn inside(&self, path: &Path) -> io::Result<String> {
        let path = absolute(path)?;
        let outside = || {
            io::Error::new(
                io::ErrorKind::NotFound,
                format!("{} is not in {}", path.display(), self.top.display()),
            )
        };
        let inside = path.strip_prefix(&self.top).map_err(|_| outside())?;
        let parts: Option<Vec<&str>> = inside.iter().map(|part| part.to_str()).collect();
        Ok(parts.ok_or_else(outside)?.join("/"))
    }
}

impl Files for Git {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let object = format!("{}:{}", self.commit, self.inside(path)?);
        let mut child = Command::new("git")
            .current_dir(&self.top)
            .args(["cat-file", "blob", &object])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let read = child.stdout.take().map_or(Ok(Vec::new()), load::bounded);
        // One that writes more than is read ends by that.
        let status = child.wait()?;
        let bytes = read?;
        if status.success() || !bytes.is_empty() {
            return Ok(bytes);
        }
        Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("it is not in `{}`", self.revision),
        ))
    }

    fn shown(&self, path: &Path) -> PathBuf {
        let inside = self.inside(path).unwrap_or_else(|_| path.display().to_string());
        PathBuf::from(format!("{}:{inside}", self.revision))
    }
}

/// What git prints.
fn text(folder: &Path, args: &[&str]) -> Result<String, String> {
    let ran = Command::new("git")
        .current_dir(folder)
        .args(args)
        .stdin(Stdio::null())
        .output();
    let ran = ran.map_err(|error| format!("git cannot be run: {error}"))?;
    if !ran.status.success() {
        let said = String::from_utf8_lossy(&ran.stderr);
        return Err(format!(
            "git: {}",
            said.lines().next().unwrap_or("it failed").trim_start_matches("fatal: ")
        ));
    }
    String::from_utf8(ran.stdout).map_err(|_| "git names a file that is not UTF-8".to_owned())
}

/// The path from the root, without links as far as it exists, and without `.` and `..`.
fn absolute(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let there = path
        .ancestors()
        .find_map(|there| Some((there, there.canonicalize().ok()?)));
    let (mut whole, rest) = match there {
        Some((there, real)) => (real, path.strip_prefix(there).unwrap_or(Path::new(""))),
        None => (PathBuf::new(), path.as_path()),
    };
    for part in rest.components() {
        match part {
            Component::ParentDir => drop(whole.pop()),
            Component::CurDir => {}
            part => whole.push(part),
        }
    }
    Ok(whole)
}
