//! Where the project goes: a folder that holds nothing, and afterwards everything or nothing again.
//!
//! It must not know what is written.

use std::io;
use std::path::{Path, PathBuf};

use super::Refused;
use crate::output::Tree;

/// What a folder may hold already: a repository without files.
const WELCOME: &str = ".git";

/// Refuses a folder that holds anything.
pub(super) fn check(dir: &Path) -> Result<(), Refused> {
    let help = "give a folder that does not exist yet, or an empty one";
    let unreadable = |error: io::Error| Refused::new(format!("{} cannot be read: {error}", dir.display()), help);
    match dir.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(unreadable(error)),
        Ok(there) if !there.is_dir() => {
            return Err(Refused::new(format!("{} is not a folder", dir.display()), help));
        }
        Ok(_) => {}
    }
    let mut names = Vec::new();
    for entry in dir.read_dir().map_err(unreadable)? {
        names.push(entry.map_err(unreadable)?.file_name());
    }
    names.retain(|name| name != WELCOME);
    // The same one each time, whatever the order on the disk.
    let Some(first) = names.iter().min() else { return Ok(()) };
    let others = match names.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let message = format!("{} is not empty: it holds `{}`{others}", dir.display(), first.display());
    Err(Refused::new(message, help))
}

/// Writes all files into `dir`, or leaves nothing behind: what was made on the way is removed again.
pub(super) fn write(tree: &Tree, dir: &Path) -> Result<(), Refused> {
    try_write(tree, dir).map_err(|error| {
        let help = "nothing was left behind; see to the cause, or give another folder";
        Refused::new(format!("the project cannot be written: {error}"), help)
    })
}

fn try_write(tree: &Tree, dir: &Path) -> io::Result<()> {
    let mut made = Made::default();
    let mut missing: Vec<&Path> = dir.ancestors().take_while(|path| is_missing(path)).collect();
    while let Some(folder) = missing.pop() {
        std::fs::create_dir(folder).map_err(|error| named(error, folder))?;
        made.folders.push(folder.to_owned());
    }
    // All is written aside first, so that what takes time and may fail comes before the first file in its place.
    let aside = dir.join(format!(".init.{}.partial", std::process::id()));
    std::fs::create_dir(&aside).map_err(|error| named(error, &aside))?;
    made.content.push(aside.clone());
    tree.write(&aside)?;
    let entries: Vec<_> = aside.read_dir()?.collect::<io::Result<_>>()?;
    for entry in entries {
        let target = dir.join(entry.file_name());
        if !is_missing(&target) {
            return Err(named(io::ErrorKind::AlreadyExists.into(), &target));
        }
        std::fs::rename(entry.path(), &target).map_err(|error| named(error, &target))?;
        made.content.push(target);
    }
    std::fs::remove_dir(&aside).map_err(|error| named(error, &aside))?;
    made.keep();
    Ok(())
}

/// Whether nothing has that name. The empty path is the current folder.
fn is_missing(path: &Path) -> bool {
    !path.as_os_str().is_empty()
        && path
            .symlink_metadata()
            .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

fn named(error: io::Error, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// What has been made. Dropped, it is removed, the youngest first.
#[derive(Default)]
struct Made {
    /// Folders that may hold what others put there meanwhile; then they stay.
    folders: Vec<PathBuf>,
    /// Files, and folders with all that is in them.
    content: Vec<PathBuf>,
}

impl Made {
    fn keep(mut self) {
        self.folders.clear();
        self.content.clear();
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // There is an error already, which is the one to tell; what cannot be removed cannot be helped.
        for path in self.content.iter().rev() {
            let _ = if path.is_dir() {
                std::fs::remove_dir_all(path)
            } else {
                std::fs::remove_file(path)
            };
        }
        for folder in self.folders.iter().rev() {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// The manifest of the workspace that `dir` lies in, where there is one.
pub(super) fn workspace(dir: &Path) -> Option<PathBuf> {
    let dir = dir.canonicalize().ok()?;
    dir.ancestors()
        .skip(1)
        .map(|folder| folder.join("Cargo.toml"))
        .find(|manifest| {
            std::fs::read_to_string(manifest)
                .is_ok_and(|text| text.lines().any(|line| line.trim_start().starts_with("[workspace")))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_leaves_nothing_that_was_not_there() {
        let room = tempfile::tempdir().expect("a folder");
        // A file that is also a folder of the project cannot be written: this fails halfway.
        let mut tree = Tree::default();
        tree.add("a", "1").expect("a path");
        tree.add("b/c", "2").expect("a path");
        tree.add("a/d", "3").expect("a path");
        let deep = room.path().join("x/y/z");
        let refused = write(&tree, &deep).expect_err("not writable");
        assert!(refused.help.contains("nothing was left"), "{}", refused.help);
        assert!(!room.path().join("x").exists());

        // The last step finds a name taken: what was moved already goes back.
        let mut tree = Tree::default();
        for path in ["a", "b/c", "d/e"] {
            tree.add(path, "1").expect("a path");
        }
        std::fs::create_dir(room.path().join("d")).expect("writable");
        let refused = write(&tree, room.path()).expect_err("taken");
        assert!(refused.message.contains("/d:"), "{}", refused.message);
        let left: Vec<_> = room
            .path()
            .read_dir()
            .expect("readable")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        assert_eq!(left, ["d"]);
    }

    #[test]
    fn a_workspace_around_the_folder_is_found() {
        let room = tempfile::tempdir().expect("a folder");
        let inner = room.path().join("a/b");
        std::fs::create_dir_all(&inner).expect("writable");
        let manifest = room.path().canonicalize().expect("a folder").join("Cargo.toml");
        std::fs::write(&manifest, "[package]\nname = \"a\"\n").expect("writable");
        assert_eq!(workspace(&inner), None);
        std::fs::write(&manifest, "[workspace]\nmembers = []\n").expect("writable");
        assert_eq!(workspace(&inner), Some(manifest));
    }
}
