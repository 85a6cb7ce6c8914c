//! A Python client, generated as the README says, calls the Rust server.

#![allow(clippy::panic, reason = "a test may")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn python() -> PathBuf {
    let made = Command::new(here("../../scripts/python-env"))
        .output()
        .expect("the script runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    PathBuf::from(String::from_utf8_lossy(&made.stdout).trim_end()).join("bin/python")
}

#[test]
fn a_python_script_calls_the_rust_service() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (mut out, mut said) = (Vec::new(), Vec::new());
    let package = folder.path().join("billing_api").display().to_string();
    let schema = here("../quickstart/schemas/billing.yaml").display().to_string();
    let command = [
        "zlink-codegen",
        "generate",
        "--lang",
        "python",
        "--out",
        &package,
        &schema,
    ];
    let code = zlink_codegen::cli::run(command, &mut out, &mut said);
    assert_eq!(code, 0, "{}", String::from_utf8_lossy(&said));

    let server = Command::new(env!("CARGO_BIN_EXE_languages"))
        .arg("tcp://127.0.0.1:0")
        .stdout(Stdio::piped())
        .spawn();
    let mut server = Server(server.expect("the server starts"));
    let mut lines = BufReader::new(server.0.stdout.take().expect("its output")).lines();
    let mut line = || lines.next().expect("a line").expect("text");
    let listens = line();
    let endpoint = listens.strip_prefix("listening on ").expect("an endpoint");

    let client = Command::new(python())
        .arg(here("client.py"))
        .arg(endpoint)
        .env("PYTHONPATH", folder.path())
        .output()
        .expect("Python runs");
    assert!(client.status.success(), "{}", String::from_utf8_lossy(&client.stderr));
    assert_eq!(String::from_utf8_lossy(&client.stdout), "R-42\n");
    assert_eq!(line(), "acme pays 990 for order 42");
}
