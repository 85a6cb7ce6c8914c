//! Processes: a case runs in one of its own, and may start others as its peers. All are the test program again.

use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::time::timeout;

use super::{Conformance, Rig, Suite, crowd};

/// Told to a child: to run its case, or to be a peer in that role.
const CASE: &str = "ZLINK_CONFORMANCE_CASE";
const PEER: &str = "ZLINK_CONFORMANCE_PEER";
/// What one case may take.
const CASE_TIME: Duration = Duration::from_secs(120);
/// What a child says starts so; the test harness in it says other things.
const SAYS: &str = "child: ";

/// What this process is there for.
pub(super) struct Role;

impl Role {
    /// Does it, and tells whether it was more than to start the others.
    pub(super) fn of_this_process(suite: &Suite, case: &Conformance, test: &str) -> bool {
        let rig = Rig::new(suite, test);
        if let Ok(told) = std::env::var(PEER) {
            let (role, endpoint) = told.split_once(' ').expect("a role and an endpoint");
            within(1, crowd::child(&rig, role, endpoint));
        } else if std::env::var_os(CASE).is_some() {
            within(case.threads, (case.run)(rig));
        } else {
            return false;
        }
        true
    }
}

fn within(threads: usize, work: impl Future<Output = ()>) {
    let mut builder = match threads {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    if threads > 1 {
        builder.worker_threads(threads);
    }
    builder.enable_all().build().expect("a runtime").block_on(work);
}

fn again(test: &str) -> tokio::process::Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command
        .args(["--exact", test, "--nocapture", "--include-ignored"])
        .stdin(Stdio::null());
    let mut command = tokio::process::Command::from(command);
    command.kill_on_drop(true);
    command
}

/// Runs the case of `test` in a process of its own; what it said where it failed.
pub(super) fn run_apart(test: &str) -> Result<(), String> {
    let mut outcome = Err(String::new());
    within(1, async {
        let output = again(test).env(CASE, "1").output();
        outcome = match timeout(CASE_TIME, output).await {
            Err(_) => Err(format!("it did not end within {CASE_TIME:?}")),
            Ok(Err(error)) => Err(error.to_string()),
            Ok(Ok(output)) if output.status.success() => {
                // A filter that finds no test would pass.
                let said = String::from_utf8_lossy(&output.stdout);
                let ran = said.contains("1 passed");
                if ran {
                    Ok(())
                } else {
                    Err(format!("{test} was not run: {said}"))
                }
            }
            Ok(Ok(output)) => {
                let (out, err) = (
                    String::from_utf8_lossy(&output.stdout),
                    String::from_utf8_lossy(&output.stderr),
                );
                Err(format!("{}\n{out}{err}", output.status))
            }
        };
    });
    outcome
}

/// Another process of this test program, as a peer. It is killed when it is dropped.
#[derive(Debug)]
pub struct Child {
    process: tokio::process::Child,
    lines: Lines<BufReader<tokio::process::ChildStdout>>,
}

impl Child {
    pub(super) async fn start(rig: &Rig, role: &str, endpoint: &str) -> Self {
        let mut process = again(&rig.test)
            .env(PEER, format!("{role} {endpoint}"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child");
        let lines = BufReader::new(process.stdout.take().expect("its output")).lines();
        Self { process, lines }
    }

    pub(super) fn say(what: impl std::fmt::Display) {
        println!("\n{SAYS}{what}");
    }

    pub(super) async fn line(&mut self) -> String {
        let next = async {
            loop {
                let line = self.lines.next_line().await.unwrap().expect("the child has ended");
                if let Some(said) = line.strip_prefix(SAYS) {
                    return said.to_owned();
                }
            }
        };
        timeout(Duration::from_secs(20), next)
            .await
            .expect("a word from the child")
    }

    fn id(&self) -> u32 {
        self.process.id().expect("it runs")
    }

    pub(super) fn signal(&self, name: &str) {
        let killed = Command::new("kill")
            .args([format!("-{name}"), self.id().to_string()])
            .status();
        assert!(killed.unwrap().success());
    }

    pub(super) fn is_alive(&mut self) -> bool {
        self.process.try_wait().unwrap().is_none()
    }

    /// What it has used so far.
    pub(super) fn processor_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id())).unwrap();
        let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        Duration::from_millis(ticks * 10)
    }
}

/// This process's resident memory, in bytes.
pub(super) fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    status.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// Lets this process have as many descriptors as it may.
pub(super) fn raise_descriptors() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
}

/// Lets this process have so many descriptors.
pub(super) fn limit_descriptors(count: u64) {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = Some(count);
    setrlimit(Resource::Nofile, limit).unwrap();
}
