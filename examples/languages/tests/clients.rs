//! Clients in Python and TypeScript, generated as the README says, call the Rust server.

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

/// What a script of the repository prints: the folder that it made.
fn made_by(script: &str) -> PathBuf {
    let made = Command::new(here("../../scripts").join(script)).output();
    let made = made.expect("the script runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    PathBuf::from(String::from_utf8_lossy(&made.stdout).trim_end())
}

/// Generates the package `billing_api` in a folder, with the README's command.
fn generate(language: &str, folder: &Path) {
    let (mut out, mut said) = (Vec::new(), Vec::new());
    let package = folder.join("billing_api").display().to_string();
    let schema = here("../quickstart/schemas/billing.yaml").display().to_string();
    let command = [
        "zlink-codegen",
        "generate",
        "--lang",
        language,
        "--out",
        &package,
        &schema,
    ];
    let code = zlink_codegen::cli::run(command, &mut out, &mut said);
    assert_eq!(code, 0, "{}", String::from_utf8_lossy(&said));
}

fn run(command: &mut Command) -> String {
    let ran = command.output().expect("it starts");
    let said = [ran.stdout.as_slice(), &ran.stderr].concat();
    assert!(ran.status.success(), "{command:?}:\n{}", String::from_utf8_lossy(&said));
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

/// The server is called by what `client` makes of its endpoint.
fn calls(client: impl FnOnce(&str) -> Command) {
    let server = Command::new(env!("CARGO_BIN_EXE_languages"))
        .arg("tcp://127.0.0.1:0")
        .stdout(Stdio::piped())
        .spawn();
    let mut server = Server(server.expect("the server starts"));
    let mut lines = BufReader::new(server.0.stdout.take().expect("its output")).lines();
    let mut line = || lines.next().expect("a line").expect("text");
    let listens = line();
    let endpoint = listens.strip_prefix("listening on ").expect("an endpoint");
    assert_eq!(run(&mut client(endpoint)), "R-42\n");
    assert_eq!(line(), "acme pays 990 for order 42");
}

#[test]
fn a_python_script_calls_the_rust_service() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    generate("python", folder.path());
    calls(|endpoint| {
        let mut client = Command::new(made_by("python-env").join("bin/python"));
        client.arg(here("client.py")).arg(endpoint);
        client.env("PYTHONPATH", folder.path());
        client
    });
}

#[test]
fn a_node_program_calls_the_rust_service() {
    // Below the folder that has the packages which the example pins.
    let made = made_by("typescript-env");
    let folder = tempfile::tempdir_in(&made).expect("a temporary folder");
    generate("typescript", folder.path());
    for file in ["client.ts", "package.json", "tsconfig.json"] {
        std::fs::copy(here("node").join(file), folder.path().join(file)).expect("a copy");
    }
    let node = made.join("node");
    let mut compile = Command::new(&node);
    run(compile
        .arg(made.join("node_modules/typescript/bin/tsc"))
        .current_dir(folder.path()));
    calls(|endpoint| {
        let mut client = Command::new(&node);
        client.arg(folder.path().join("out/client.js")).arg(endpoint);
        client
    });
}
