//! Plain ZeroMQ peers, libzmq's by way of pyzmq: a SUB of our publisher, and a PUB for our subscriber, with heartbeats.

use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use zlink_runtime::PeerState;
use zlink_runtime::prelude::*;

use crate::kit::{NEWS, Reader, event, news_publisher, news_subscriber, note, until, within};

const BEACON: [&[u8]; 2] = [b"\x01ZLF1", b"ZF\x01\x01"];

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

/// `peer.py` in a role.
struct Peer {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
    input: ChildStdin,
}

impl Peer {
    async fn start(arguments: &[&str]) -> Self {
        let python = tokio::task::spawn_blocking(python).await.unwrap();
        let mut process = Command::new(python)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fanout/peer.py"))
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

    async fn line(&mut self) -> String {
        let line = within(Duration::from_secs(30), self.lines.next_line()).await;
        let line = line.expect("a word from the peer in time").unwrap();
        let line = line.expect("peer.py failed; see its output");
        line.strip_prefix("peer: ")
            .expect("peer.py says no other lines")
            .to_owned()
    }

    async fn tell(&mut self, what: &str) {
        self.input.write_all(format!("{what}\n").as_bytes()).await.unwrap();
    }

    async fn send(&mut self, frames: &[&[u8]]) {
        self.tell(&format!("send {}", said(frames))).await;
    }

    /// It has not lost its connection.
    async fn done(mut self) {
        self.tell("bye").await;
        loop {
            match self.line().await.as_str() {
                "lost 0" => break,
                line => assert!(line.starts_with("got "), "{line}"),
            }
        }
        assert!(self.process.wait().await.unwrap().success());
    }
}

fn said(frames: &[&[u8]]) -> String {
    let hex = |frame: &&[u8]| frame.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    frames.iter().map(hex).collect::<Vec<_>>().join(" ")
}

/// REQ: MSG-705, CH-902, NET-903
#[tokio::test]
async fn a_sub_gets_what_it_wants_and_all_that_is_said_to_everybody() {
    let host = Host::builder().fanout(|fanout| fanout.publisher(NEWS).listen("tcp://127.0.0.1:0"));
    let host = host.start().await.unwrap();
    let endpoint = host.fanout("news").unwrap().endpoint().unwrap().to_string();
    let mut few = Peer::start(&["sub", &endpoint, "order.", "order.x"]).await;
    let mut all = Peer::start(&["sub", &endpoint, ""]).await;
    let seen = host.clone();
    until("both", move || seen.fanout("news").unwrap().subscribers() == 2).await;
    let publish = news_publisher(&host);
    let record = event("news", "test.news.order", &note(7));
    for peer in [&mut few, &mut all] {
        // What it subscribes to may be on its way still.
        let first = loop {
            publish.order(note(7)).await.unwrap();
            if let Some(first) = within(Duration::from_millis(50), peer.line()).await {
                break first;
            }
        };
        assert_eq!(first, format!("got {}", said(&[b"order.", &record])));
    }
    publish.flash(note(1)).await.unwrap();
    publish.order(note(9)).topic("order.x").await.unwrap();
    let last = format!(
        "got {}",
        said(&[b"order.x", &event("news", "test.news.order", &note(9))])
    );
    let mut before = Vec::new();
    loop {
        let line = few.line().await;
        if line == last {
            break;
        }
        before.push(line);
    }
    assert!(
        before.iter().all(|line| line.contains(&said(&[b"order."]))),
        "{before:?}"
    );
    while all.line().await != format!("got {}", said(&BEACON)) {}
    few.tell("cancel order.").await;
    // Once it is heard, what it takes back comes no more, and the rest does.
    loop {
        for topic in ["order.y", "order.x"] {
            publish.order(note(9)).topic(topic).await.unwrap();
        }
        if few.line().await == last {
            break;
        }
        assert_eq!(few.line().await, last);
    }
    few.done().await;
    all.done().await;
    host.shutdown().await.unwrap();
}

/// REQ: MSG-705, NET-905
#[tokio::test]
async fn a_pub_is_heard_by_its_events_and_beacons() {
    let mut peer = Peer::start(&["pub", "tcp://127.0.0.1:*"]).await;
    let endpoint = peer.line().await;
    let reader = Reader::new();
    let subscriber = news_subscriber(reader.clone());
    let host = Host::builder().fanout(|fanout| fanout.subscriber(subscriber).subscribe("a").connect(endpoint));
    let host = host.start().await.unwrap();
    let is_ready = || host.fanout("news").unwrap().intents()[0].state == PeerState::Ready;
    while !is_ready() {
        peer.send(&BEACON).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for number in 0..100 {
        let record = event("news", "test.news.flash", &note(number));
        peer.send(&[b"b", &record]).await;
        peer.send(&[b"ab", &record]).await;
    }
    let seen = reader.clone();
    until("all events", move || seen.count() >= 100).await;
    assert_eq!(reader.numbers(), (0..100).collect::<Vec<_>>());
    peer.done().await;
    host.shutdown().await.unwrap();
}
