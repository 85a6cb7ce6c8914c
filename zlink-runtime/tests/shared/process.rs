//! Other processes of a test: the same program, told which role to play, that talk in lines.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

const ROLE: &str = "ZLINK_TEST_ROLE";
/// What a process says to its parent begins with it: the test harness prints lines of its own.
const MARK: &str = "@ ";

/// The role that this process was started for.
pub(crate) fn role() -> Option<(String, Vec<String>)> {
    let role = std::env::var(ROLE).ok()?;
    let mut words = role.split('|').map(str::to_owned);
    Some((words.next()?, words.collect()))
}

/// Says a line to the parent.
pub(crate) fn tell(line: &str) {
    let mut out = std::io::stdout().lock();
    // The parent may be gone; then nobody needs it.
    let _ = out
        .write_all(format!("{MARK}{line}\n").as_bytes())
        .and_then(|()| out.flush());
}

/// Waits for a word of the parent; ends the process where there is none any more.
pub(crate) async fn told(word: &str) {
    let line = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        let _ = std::io::stdin().read_line(&mut line);
        line
    });
    let line = line.await.unwrap();
    if line.trim() != word {
        assert!(line.is_empty(), "{line:?} instead of {word:?}");
        std::process::exit(1);
    }
}

/// Memory of this process that is resident, in bytes.
pub(crate) fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// Processor time of this process so far.
pub(crate) fn on_cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, rest) = stat.rsplit_once(')').unwrap();
    let ticks = rest
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(|ticks| ticks.parse::<u64>().unwrap());
    Duration::from_millis(ticks.sum::<u64>() * 10)
}

/// A process that plays a role. Dropping it ends it.
pub(crate) struct Process {
    name: String,
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Process {
    pub(crate) fn start(role: &str, arguments: &[&str]) -> Self {
        let name = [&[role], arguments].concat().join("|");
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["child", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
            .env(ROLE, &name)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // The harness prints the name of the test without an end of line.
                let Some((_, line)) = line.split_once(MARK) else {
                    continue;
                };
                if send.send(line.to_owned()).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take().unwrap();
        Self {
            name,
            child,
            input,
            lines,
        }
    }

    pub(crate) fn say(&mut self, word: &str) {
        writeln!(self.input, "{word}").unwrap();
    }

    /// Waits for the next line, which begins so, and returns its rest.
    pub(crate) fn line(&mut self, begin: &str) -> String {
        self.line_within(begin, Duration::from_secs(60))
    }

    /// Waits for the next line, whatever it says.
    pub(crate) fn any_line(&mut self, limit: Duration) -> String {
        let line = self.lines.recv_timeout(limit);
        line.unwrap_or_else(|end| panic!("{}: no line within {limit:?}: {end}", self.name))
    }

    pub(crate) fn line_within(&mut self, begin: &str, limit: Duration) -> String {
        let line = self.any_line(limit);
        match line.strip_prefix(begin) {
            Some(rest) => rest.to_owned(),
            None => panic!("{}: {line:?} instead of {begin:?}", self.name),
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Whether all of its threads stand still after a SIGSTOP.
    pub(crate) fn is_stopped(&self) -> bool {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let is_stopped = |task: std::fs::DirEntry| {
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('T'))
        };
        tasks.flatten().all(is_stopped)
    }

    /// SIGKILL; and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for its end, which must be a good one.
    pub(crate) fn end(mut self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(end) = self.child.try_wait().unwrap() {
                assert!(end.success(), "{}: {end}", self.name);
                return;
            }
            assert!(Instant::now() < deadline, "{} does not end", self.name);
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Most have ended by themselves. One that is stopped ends, too.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
