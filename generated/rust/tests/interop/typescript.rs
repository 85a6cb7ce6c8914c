//! TypeScript: what was generated, compiled by the compiler that its package pins, and tested by node's own test runner,
//! the client against a real host.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::python::values_file;

/// The folder with the compiled tests, and with `node`.
fn compiled() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/typescript-env");
        let made = Command::new(script).output().expect("the script starts");
        assert!(
            made.status.success(),
            "the TypeScript tests need node 20 and npm, or python3 with venv and pip; or they do not compile:\n{}{}",
            String::from_utf8_lossy(&made.stdout),
            String::from_utf8_lossy(&made.stderr)
        );
        PathBuf::from(String::from_utf8_lossy(&made.stdout).trim_end())
    })
}

/// Runs the tests of one file.
fn test(name: &str, variables: &[(&str, &Path)]) {
    let folder = compiled();
    let mut command = Command::new(folder.join("node"));
    command.args(["--test", "--test-reporter=tap"]);
    command.arg(folder.join(format!("out/tests/{name}.test.js")));
    command.env("ZLINK_REPOSITORY", Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    for (name, value) in variables {
        command.env(name, value);
    }
    let output = command.output().expect("node starts");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success(), "{name}:\n{said}");
    assert!(!said.contains("# SKIP"), "{name}:\n{said}");
}

/// REQ: MSG-606
#[test]
fn typescript_reads_writes_and_refuses() {
    test("codec", &[]);
}

#[test]
fn typescript_has_the_parts_that_the_vectors_and_the_protocol_demand() {
    test("parts", &[]);
}

#[test]
fn typescript_runs_under_names_that_are_its_words() {
    test("words", &[]);
}

#[test]
fn typescript_follows_the_client_protocol() {
    test("protocol", &[]);
}

#[test]
fn typescript_calls_a_rust_host() {
    let host = Path::new(env!("CARGO_BIN_EXE_interop-host"));
    test("host", &[("ZLINK_INTEROP_HOST", host)]);
}

/// REQ: MSG-602
#[test]
fn two_hundred_values_are_the_same_in_typescript() {
    test("values", &[("ZLINK_VALUES", values_file())]);
}
