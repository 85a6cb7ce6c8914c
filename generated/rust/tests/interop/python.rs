//! Python: its checkers on what was generated, its tests against a real host, and values that all languages draw alike.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use zlink_generated::test_every_type::All;
use zlink_runtime::message::codec::{decode, encode};

use super::flatc::{self, Flatc};
use super::values::value;
use super::{ROOT, SCHEMA};

/// How many values all languages must agree on.
const VALUES: u64 = 200;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../python")
}

/// A program of the Python environment, run where the package is.
fn run(program: &str, arguments: &[&str], variables: &[(&str, &Path)]) {
    let mut command = Command::new(flatc::environment().join("bin").join(program));
    command.current_dir(folder()).args(arguments);
    // No `__pycache__` among the checked-in files.
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    for (name, value) in variables {
        command.env(name, value);
    }
    let output = command.output().expect("the program starts");
    let said = [output.stdout, output.stderr].concat();
    assert!(
        output.status.success(),
        "{program} {arguments:?}:\n{}",
        String::from_utf8_lossy(&said)
    );
}

fn test(module: &str, variables: &[(&str, &Path)]) {
    run(
        "python",
        &["-W", "error::ResourceWarning", "-m", "unittest", module],
        variables,
    );
}

#[test]
fn python_is_clean_under_pyright_strict() {
    let python = flatc::environment().join("bin/python");
    run("pyright", &["--pythonpath", &python.display().to_string()], &[]);
}

#[test]
fn python_is_clean_under_mypy_strict() {
    let cache = tempfile::tempdir().expect("a temporary folder");
    run("mypy", &["--cache-dir", &cache.path().display().to_string()], &[]);
}

#[test]
fn python_reads_and_refuses_as_the_vectors_say() {
    test("tests.test_codec", &[]);
}

#[test]
fn python_follows_the_client_protocol() {
    test("tests.test_protocol", &[]);
}

#[test]
fn python_runs_under_names_that_are_its_words() {
    test("tests.test_words", &[]);
}

#[test]
fn python_calls_a_rust_host() {
    let host = Path::new(env!("CARGO_BIN_EXE_interop-host"));
    test("tests.test_client", &[("ZLINK_INTEROP_HOST", host)]);
}

/// What Rust and flatc make of the values, a line each in hexadecimal digits: each language draws the same from the same
/// seeds, and what one encodes, all others read as that value.
pub(crate) fn values_file() -> &'static Path {
    static FILE: OnceLock<tempfile::NamedTempFile> = OnceLock::new();
    let file = FILE.get_or_init(|| {
        let flatc = Flatc::new(SCHEMA);
        let mut lines = String::new();
        for seed in 0..VALUES {
            let value = value(seed);
            let ours = encode(&value, <[u8]>::to_vec).expect("the value is legal");
            let theirs = flatc.to_binary(ROOT, &flatc.to_json(ROOT, &ours));
            assert_eq!(decode::<All>(&ours).expect("what was encoded"), value, "seed {seed}");
            assert_eq!(
                decode::<All>(&theirs).expect("what flatc encoded"),
                value,
                "seed {seed}"
            );
            let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            lines.push_str(&format!("{} {}\n", hex(&ours), hex(&theirs)));
        }
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), lines).expect("writable");
        file
    });
    file.path()
}

/// REQ: MSG-602
#[test]
fn two_hundred_values_are_the_same_in_rust_flatc_and_python() {
    test("tests.test_values", &[("ZLINK_VALUES", values_file())]);
}
