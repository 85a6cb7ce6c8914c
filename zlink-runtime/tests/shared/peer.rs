//! A peer in Python, which plays a role and talks in lines.

use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// The interpreter of the Python environment that all interop tests share. No test passes without it.
fn python() -> &'static str {
    static PYTHON: OnceLock<String> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/python-env");
        let output = std::process::Command::new(script).output().expect("the script runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "the interop tests need python3 with venv, and pip: {said}"
        );
        format!("{}/bin/python", String::from_utf8_lossy(&output.stdout).trim_end())
    })
}

/// A script in a role.
pub(crate) struct Peer {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
    input: ChildStdin,
}

impl Peer {
    /// Starts that script of this crate.
    pub(crate) async fn start(script: &str, arguments: &[&str]) -> Self {
        let python = tokio::task::spawn_blocking(python).await.unwrap();
        let mut process = Command::new(python)
            .arg(format!("{}/{script}", env!("CARGO_MANIFEST_DIR")))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let input = process.stdin.take().unwrap();
        Self { process, lines, input }
    }

    /// What it says next.
    pub(crate) async fn line(&mut self) -> String {
        let line = timeout(Duration::from_secs(30), self.lines.next_line()).await;
        let line = line.expect("a word from the peer in time").unwrap();
        let line = line.expect("peer.py failed; see its output");
        line.strip_prefix("peer: ")
            .expect("peer.py says no other lines")
            .to_owned()
    }

    pub(crate) async fn tell(&mut self, what: &str) {
        self.input.write_all(format!("{what}\n").as_bytes()).await.unwrap();
    }

    /// It ends well.
    pub(crate) async fn ends(mut self) {
        assert!(self.process.wait().await.unwrap().success());
    }
}
