//! What a back end makes: files in memory, in a fixed order, written only where they differ.
//!
//! It must not know what is in the files.

use std::collections::BTreeMap;
use std::fs::{File, Permissions};
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};

/// Files by relative path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    files: BTreeMap<String, Vec<u8>>,
}

/// Why a file does not go into a [`Tree`].
#[derive(Clone, PartialEq, Eq)]
pub enum Refused {
    /// The path is absolute, empty, or leaves the tree.
    Path(String),
    /// Another file has that path.
    Twice(String),
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refused::Path(path) => write!(f, "`{path}` is no path inside the output folder"),
            Refused::Twice(path) => write!(f, "`{path}` would be written twice"),
        }
    }
}

impl std::error::Error for Refused {}

impl std::fmt::Debug for Refused {
    /// As people read it: a `main` that ends with `?` prints it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl Tree {
    /// Adds a file. Paths use `/` on every machine.
    ///
    /// # Errors
    /// Where the path leaves the tree or is taken, also by a name that differs in case only: such a tree
    /// could not be written everywhere.
    pub fn add(&mut self, path: impl Into<String>, content: impl Into<Vec<u8>>) -> Result<(), Refused> {
        let path = path.into();
        let inside = !path.contains('\\') && Path::new(&path).components().all(|c| matches!(c, Component::Normal(_)));
        if path.is_empty() || !inside {
            return Err(Refused::Path(path));
        }
        if self.files.keys().any(|taken| taken.eq_ignore_ascii_case(&path)) {
            return Err(Refused::Twice(path));
        }
        self.files.insert(path, content.into());
        Ok(())
    }

    /// Moves all files of `other` into this tree.
    ///
    /// # Errors
    /// Where a path is taken by a file with other content; the same file twice is one file.
    pub fn merge(&mut self, other: Tree) -> Result<(), Refused> {
        for (path, content) in other.files {
            if self.files.get(&path) != Some(&content) {
                self.add(path, content)?;
            }
        }
        Ok(())
    }

    /// The content of a file.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).map(Vec::as_slice)
    }

    /// All files by rising path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files
            .iter()
            .map(|(path, content)| (path.as_str(), content.as_slice()))
    }

    /// Whether there is no file.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Writes each file below `dir` whose content there differs, and returns the paths of those.
    ///
    /// A file is replaced as one step, so nobody reads half of it.
    ///
    /// # Errors
    /// The first file that cannot be written.
    pub fn write(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let mut written = Vec::new();
        for (path, content) in &self.files {
            let path = dir.join(path);
            if write_if_changed(&path, content)? {
                written.push(path);
            }
        }
        Ok(written)
    }
}

/// Writes `content` to `path` unless it is there already; tells whether it wrote.
///
/// A file that is there stays the file it is, but for what it says: who may read it stays, and a link is followed.
///
/// # Errors
/// Where the file or its folder cannot be written; the message names the path.
pub fn write_if_changed(path: &Path, content: &[u8]) -> io::Result<bool> {
    if std::fs::read(path).is_ok_and(|there| there == content) {
        return Ok(false);
    }
    replace(path, content).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    Ok(true)
}

fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    let (path, permissions) = match path.canonicalize() {
        Ok(target) => {
            let permissions = target.metadata()?.permissions();
            (target, Some(permissions))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => (path.to_owned(), None),
        Err(error) => return Err(error),
    };
    let mut partial = path.as_os_str().to_owned();
    partial.push(format!(".{}.partial", std::process::id()));
    let partial = PathBuf::from(partial);
    let moved = fill(&partial, content, permissions).and_then(|()| std::fs::rename(&partial, &path));
    if moved.is_err() {
        // The file is as it was, so the partial one is of no use; that it stays behind if this fails too is harmless.
        let _ = std::fs::remove_file(&partial);
    }
    moved
}

/// Writes a new file. Nobody who may not read it sees any of it: it has its permissions before its content.
fn fill(path: &Path, content: &[u8], permissions: Option<Permissions>) -> io::Result<()> {
    let mut file = File::create(path)?;
    if let Some(permissions) = permissions {
        file.set_permissions(permissions)?;
    }
    file.write_all(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_refuses_what_leaves_it_or_collides() {
        let mut tree = Tree::default();
        tree.add("a/b.rs", "x").expect("a plain path");
        for path in ["", "/etc/passwd", "../a", "a/../../b", "a\\b"] {
            assert_eq!(tree.add(path, ""), Err(Refused::Path(path.into())));
        }
        assert_eq!(tree.add("A/b.rs", ""), Err(Refused::Twice("A/b.rs".into())));
    }

    #[test]
    fn unchanged_files_are_left_alone() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let mut tree = Tree::default();
        tree.add("b", "1").expect("a plain path");
        tree.add("a/c", "2").expect("a plain path");
        assert_eq!(tree.write(dir.path()).expect("writable").len(), 2);
        assert_eq!(tree.write(dir.path()).expect("writable").len(), 0);
        std::fs::write(dir.path().join("a/c"), "3").expect("writable");
        assert_eq!(tree.write(dir.path()).expect("writable"), [dir.path().join("a/c")]);
        assert_eq!(std::fs::read(dir.path().join("a/c")).expect("readable"), b"2");
        assert_eq!(
            std::fs::read_dir(dir.path()).expect("readable").count(),
            2,
            "no partial file stays"
        );
    }
}
