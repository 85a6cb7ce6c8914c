//! A folder of a test's own, and the command run in it.

use std::path::{Path, PathBuf};

/// A temporary folder with files.
pub(crate) struct Room(tempfile::TempDir);

/// How a command ended.
pub(crate) struct Ran {
    pub(crate) code: u8,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Room {
    pub(crate) fn new() -> Self {
        Room(tempfile::tempdir().expect("a temporary folder"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.file(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
        std::fs::write(&path, content).expect("writable");
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).expect("readable")
    }

    /// The files below a folder, sorted, as paths from it.
    pub(crate) fn files(&self, folder: &str) -> Vec<String> {
        let folder = self.file(folder);
        let (mut waiting, mut files) = (vec![folder.clone()], Vec::new());
        while let Some(path) = waiting.pop() {
            for entry in std::fs::read_dir(path).expect("readable") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    waiting.push(path);
                } else {
                    files.push(path.strip_prefix(&folder).expect("below").display().to_string());
                }
            }
        }
        files.sort();
        files
    }

    /// Runs `zlink-codegen` with these arguments; `@name` is a file of the room, `@` the room.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        let args = args.iter().map(|arg| match arg.strip_prefix('@') {
            Some("") => self.path().display().to_string(),
            Some(name) => self.file(name).display().to_string(),
            None => (*arg).to_owned(),
        });
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = zlink_codegen::cli::run(
            std::iter::once("zlink-codegen".to_owned()).chain(args),
            &mut out,
            &mut err,
        );
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Ran {
            code,
            out: text(out),
            err: text(err),
        }
    }
}
