//! flatc 25.12.19, from the Python environment that all interop tests share.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const VERSION: &str = "flatc version 25.12.19";

/// The compiler with one schema.
pub(crate) struct Flatc {
    dir: tempfile::TempDir,
}

fn fbs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fbs")
}

fn run(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed:\n{text}");
    text
}

/// The Python environment, which is made where it is missing.
pub(crate) fn environment() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/python-env");
        let folder = run(&mut Command::new(script));
        Path::new(folder.lines().next().unwrap_or_default()).to_owned()
    })
}

fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let flatc = environment().join("bin/flatc");
        let version = run(Command::new(&flatc).arg("--version"));
        assert!(version.starts_with(VERSION), "{} says {version}", flatc.display());
        flatc
    })
}

impl Flatc {
    pub(crate) fn new(schema: &str) -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(dir.path().join("schema.fbs"), schema).expect("writable");
        Self { dir }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(binary());
        command.current_dir(self.dir.path()).arg("-I").arg(fbs());
        command
    }

    /// What a message is, in JSON.
    pub(crate) fn to_json(&self, root: &str, bytes: &[u8]) -> serde_json::Value {
        std::fs::write(self.dir.path().join("message.bin"), bytes).expect("writable");
        let flags = ["--json", "--strict-json", "--raw-binary", "--root-type", root];
        run(self.command().args(flags).args(["schema.fbs", "--", "message.bin"]));
        let json = std::fs::read(self.dir.path().join("message.json")).expect("flatc wrote it");
        serde_json::from_slice(&json).expect("flatc writes JSON")
    }

    /// The message that JSON says.
    pub(crate) fn to_binary(&self, root: &str, json: &serde_json::Value) -> Vec<u8> {
        std::fs::write(self.dir.path().join("value.json"), json.to_string()).expect("writable");
        run(self
            .command()
            .args(["--binary", "--root-type", root, "schema.fbs", "value.json"]));
        std::fs::read(self.dir.path().join("value.bin")).expect("flatc wrote it")
    }

    /// Compiles a checked-in schema.
    pub(crate) fn check(name: &str) {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let mut command = Command::new(binary());
        command
            .current_dir(fbs())
            .args(["--binary", "--schema", "--bfbs-comments", "-o"])
            .arg(dir.path());
        run(command.arg(format!("{name}.fbs")));
        assert!(dir.path().join(format!("{name}.bfbs")).exists());
    }
}
