//! A desk and its screens, as the README of the examples starts them.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Nothing takes so long on a machine that works.
const PATIENCE: Duration = Duration::from_secs(30);

/// A program, and what it says.
struct Program {
    child: Child,
    lines: Receiver<String>,
}

impl Program {
    fn start(path: &str, arguments: &[&str]) -> Self {
        let child = Command::new(path)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = child.expect("the program runs");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let (says, lines) = channel();
        // It ends with the program, or with the test.
        std::thread::spawn(move || {
            output
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| says.send(line))
        });
        Self { child, lines }
    }

    fn type_in(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().expect("a pipe");
        writeln!(input, "{line}").expect("the program reads");
    }

    /// The next line that is not `passed_over`.
    fn next_but(&self, passed_over: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE).expect("a line in time");
            if line != passed_over {
                return line;
            }
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// REQ: CH-802, CH-902, CH-904, CH-905
#[test]
fn a_screen_shows_what_it_subscribes_to_from_when_it_is_there() {
    let mut desk = Program::start(env!("CARGO_BIN_EXE_desk"), &["tcp://127.0.0.1:0"]);
    let first = desk.next_but("");
    let endpoint = first.strip_prefix("listening on ").expect("where it listens");
    let all = Program::start(env!("CARGO_BIN_EXE_screen"), &[endpoint]);
    let front = Program::start(
        env!("CARGO_BIN_EXE_screen"),
        &[endpoint, "doors.front", "doors.fr", "notices.x"],
    );
    // What is told before a screen is there is lost to it: the desk says the same until both show it.
    let there = "doors.front: the front door opens";
    let begin = Instant::now();
    for screen in [&all, &front] {
        loop {
            desk.type_in("front opens");
            match screen.lines.recv_timeout(Duration::from_millis(50)) {
                Ok(line) => break assert_eq!(line, there),
                Err(_) => assert!(begin.elapsed() < PATIENCE, "a screen shows nothing"),
            }
        }
    }
    for line in ["back opens", "lunch is ready", "front closes"] {
        desk.type_in(line);
    }
    assert_eq!(all.next_but(there), "doors.back: the back door opens");
    assert_eq!(all.next_but(there), "notices.: lunch is ready");
    assert_eq!(all.next_but(there), "doors.front: the front door closes");
    // Topics that overlap bring one copy, and the others nothing.
    assert_eq!(front.next_but(there), "doors.front: the front door closes");
    desk.type_in("fridge opens");
    assert_eq!(front.next_but(there), "doors.fridge: the fridge door opens");
    // The end of its input is the end of the desk.
    drop(desk.child.stdin.take());
    assert!(desk.child.wait().expect("it ends").success());
}
