//! The demo as a user starts it: real processes, real sockets, a real SIGKILL. In a short form.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

const DEMO: &str = env!("CARGO_BIN_EXE_billing-demo");

/// The numbers of the table's row of that name, in order: charges, replies, errors, at once.
fn row(output: &str, name: &str) -> Vec<usize> {
    let row = output
        .lines()
        .find(|line| line.split_whitespace().next() == Some(name) && !line.contains(" s "));
    let numbers = row
        .unwrap_or_else(|| panic!("no row {name} in:\n{output}"))
        .split_whitespace()
        .skip(1)
        .take(4);
    numbers.map(|number| number.parse().unwrap()).collect()
}

#[test]
fn all_promises_are_kept_while_servers_are_flooded_drained_killed_and_replaced() {
    let demo = Command::new(DEMO).arg("1").output().unwrap();
    let output = String::from_utf8(demo.stdout).unwrap();
    let errors = String::from_utf8_lossy(&demo.stderr);
    assert!(demo.status.success(), "{:?}\n{output}\n{errors}", demo.status);
    assert!(!output.contains("BROKEN"), "{output}");
    assert_eq!(
        output.lines().filter(|line| line.starts_with("ok ")).count(),
        11,
        "{output}"
    );
    // All of it really happened.
    let mut sum = vec![0; 3];
    for phase in ["calm", "flood", "drain", "kill", "join"] {
        let row = row(&output, phase);
        assert!(row[0] >= 1_000, "{phase}: {row:?}\n{output}");
        assert_eq!(row[0], row[1] + row[2], "{phase}\n{output}");
        sum.iter_mut().zip(&row).for_each(|(sum, value)| *sum += value);
    }
    assert_eq!(row(&output, "total")[..3], sum, "{output}");
    assert!(
        row(&output, "kill")[2] > 0,
        "nothing was under way at the killed server\n{output}"
    );
    assert!(output.contains("Unavailable (Unknown)"), "{output}");
    // The pressure was shown while it was there.
    let live: Vec<_> = output
        .lines()
        .filter(|line| line.contains("  c: ") && line.contains(" of 64 permits in use"))
        .collect();
    assert!(live.iter().any(|line| line.contains("PAUSED")), "{output}");
    assert!(live.last().is_some_and(|line| !line.contains(" 0 pauses")), "{output}");
}

/// A play that is killed takes its servers along.
#[test]
#[cfg(target_os = "linux")]
fn servers_end_with_the_play() {
    use std::time::{Duration, Instant};
    let mut play = Command::new(DEMO).arg("60").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(play.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("calm"));
    let children = format!("/proc/{0}/task/{0}/children", play.id());
    let children = std::fs::read_to_string(children).unwrap();
    let children: Vec<_> = children.split_whitespace().map(str::to_owned).collect();
    assert_eq!(children.len(), 3);
    play.kill().unwrap();
    play.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    let lives = |pid: &String| {
        let arguments = std::fs::read_to_string(format!("/proc/{pid}/cmdline"));
        arguments.is_ok_and(|arguments| arguments.contains("serve"))
    };
    while children.iter().any(lives) {
        assert!(Instant::now() < deadline, "a server outlived the play");
        std::thread::yield_now();
    }
}

#[test]
fn a_wrong_argument_is_told_and_plays_nothing() {
    for arguments in [&["0"][..], &["61"], &["x"], &["1", "2"]] {
        let demo = Command::new(DEMO).args(arguments).output().unwrap();
        assert_eq!(demo.status.code(), Some(2));
        assert!(
            String::from_utf8(demo.stderr)
                .unwrap()
                .contains("usage: billing-demo [SECONDS]")
        );
        assert!(demo.stdout.is_empty());
    }
}
