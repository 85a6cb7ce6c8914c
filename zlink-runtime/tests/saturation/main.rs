//! A host with 64 permits under ten times its capacity, from two peers and from itself, each a process of its own: nothing is
//! refused or lost, order per source is kept, memory stays flat, and who wants little gets it.
//!
//! Some seconds in `make test`, a minute each in `make soak`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail"
)]

mod host;
mod mutual;
mod object;
mod peers;
#[path = "../shared/process.rs"]
#[allow(dead_code, reason = "other tests stop and kill them")]
mod process;

use std::collections::BTreeMap;
use std::time::Duration;

use process::{Process, role};

/// How many jobs may wait in the host.
pub(crate) const PERMITS: u32 = 64;
/// Senders in each flooding peer, and in the host itself: ten times its permits from each of them.
pub(crate) const SENDERS: u64 = 10 * PERMITS as u64;
/// How long what expires may be told too late by a busy machine.
const TOLERANCE: Duration = Duration::from_secs(2);
/// How much memory may grow from a third of the time on.
const GROWTH: u64 = 16 << 20;

/// What the handlers of the host do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handlers {
    /// They work for a while.
    Work,
    /// They are of a Spot, and await a send to another Spot of their host, and one to a Spot of a peer.
    Send,
}

/// REQ: PM-91, PM-96, PM-100, PM-36, PM-37, PM-40
#[test]
fn handlers_that_only_work() {
    saturate(Handlers::Work, Duration::from_secs(5));
}

/// REQ: PM-64, PM-60, PM-61, PM-91, PM-96, PM-100
#[test]
fn handlers_that_send_to_others() {
    saturate(Handlers::Send, Duration::from_secs(5));
}

#[test]
#[ignore = "a soak: `make soak` runs it"]
fn soak_handlers_that_only_work() {
    saturate(Handlers::Work, Duration::from_secs(60));
}

#[test]
#[ignore = "a soak: `make soak` runs it"]
fn soak_handlers_that_send_to_others() {
    saturate(Handlers::Send, Duration::from_secs(60));
}

/// What the other processes run; by itself it does nothing.
#[test]
#[ignore = "the other processes of these tests"]
fn child() {
    let Some((role, arguments)) = role() else { return };
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        match (role.as_str(), arguments.as_slice()) {
            ("host", rest) => host::run(rest.first().copied()).await,
            ("flood", [name, endpoint, rid, rest @ ..]) => {
                peers::flood(name, [endpoint, rid], rest.first().copied()).await
            }
            ("light", [endpoint, rid, rest @ ..]) => peers::light([endpoint, rid], rest.first().copied()).await,
            ("mutual", [own, other, rest @ ..]) => mutual::run(own, other, rest.first().copied()).await,
            other => panic!("no such role: {other:?}"),
        }
    });
}

/// The numbers behind a word, by name.
fn figures(line: &str) -> BTreeMap<String, u64> {
    let pairs = line.split_whitespace().filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(name, value)| (name.to_owned(), value.parse().unwrap()))
        .collect()
}

fn saturate(handlers: Handlers, time: Duration) {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite://{}", folder.path().join("spots.db").display());
    // Where they have Spots.
    let store: &[&str] = match handlers {
        Handlers::Work => &[],
        Handlers::Send => &[&store],
    };
    let mut host = Process::start("host", store);
    let (endpoint, rid) = (host.line("endpoint "), host.line("rid "));
    let to: &[&str] = &[&endpoint, &rid];
    let mut light = Process::start("light", &[to, store].concat());
    light.line("ready");
    let mut floods = ["a", "b"].map(|name| Process::start("flood", &[&[name], to, store].concat()));
    floods.iter_mut().for_each(|flood| drop(flood.line("ready")));
    host.say("flood");
    // All is held at first: the host and its peers wait, and that costs nothing.
    println!("{handlers:?}: while all is held {}", host.line("held "));
    std::thread::sleep(time);

    floods.iter_mut().for_each(|flood| flood.say("stop"));
    light.say("stop");
    // What had been sent is worked off first.
    let limit = Duration::from_secs(120);
    let mut sent: BTreeMap<String, u64> = BTreeMap::new();
    for (name, flood) in ["a", "b"].into_iter().zip(&mut floods) {
        let seen = figures(&flood.line_within("flood ", limit));
        assert_eq!(seen["refused"], 0, "{name}: {seen:?}");
        sent.insert(name.to_owned(), seen["sent"]);
    }
    let seen = figures(&light.line_within("light ", limit));
    println!("{handlers:?}: the light peer {seen:?}");
    assert!(seen["served"] >= time.as_secs() && seen["failed"] == 0, "{seen:?}");
    assert!(seen["expired"] > 0 && seen["other_ends"] == 0, "{seen:?}");
    assert!(u128::from(seen["late_ms"]) < TOLERANCE.as_millis(), "{seen:?}");

    host.say("stop");
    let own = figures(&host.line_within("own ", limit));
    sent.insert("own".to_owned(), own["sent"]);
    assert_eq!((own["refused"], own["unanswered"]), (0, 0), "{own:?}");
    assert!(own["answered"] >= time.as_secs(), "{own:?}");
    let seen = figures(&host.line_within("host ", limit));
    println!("{handlers:?}: sent {sent:?}; replies to the host {own:?}; the host {seen:?}");
    for (source, sent) in &sent {
        assert_eq!(seen[&format!("ran_{source}")], *sent, "{source}: {seen:?}");
    }
    assert_eq!((seen["disorder"], seen["relays_failed"]), (0, 0), "{seen:?}");
    assert!(
        seen["most"] <= PERMITS.into() && seen["pauses"] > 0 && seen["left"] == 0,
        "{seen:?}"
    );
    let grown = seen["rss_end"].saturating_sub(seen["rss_third"]);
    assert!(grown < GROWTH, "memory grew by {} KiB: {seen:?}", grown >> 10);
    light.say("end");
    let relayed = figures(&light.line_within("relayed ", limit));
    assert_eq!(relayed["disorder"], 0, "{relayed:?}");
    if handlers == Handlers::Send {
        let ran = seen["ran_a"] + seen["ran_b"] + seen["ran_own"];
        assert_eq!(
            (relayed["ran"], seen["ran_relay"]),
            (ran, ran),
            "one to the Spot here and one to the Spot of the peer for each"
        );
    }
    floods.into_iter().chain([light, host]).for_each(Process::end);
}

/// Two hosts flood each other while both hold all that they have: each has told the other to pause. Once they work, both go on
/// to the end of it.
///
/// REQ: PM-90, PM-91
#[test]
fn two_hosts_that_have_paused_each_other_go_on() {
    let limit = Duration::from_secs(60);
    let mut a = Process::start("mutual", &["a", "b"]);
    let endpoint = a.line("endpoint ");
    let mut b = Process::start("mutual", &["b", "a", &endpoint]);
    b.line("endpoint ");
    let mut both = [a, b];
    both.iter_mut().for_each(|host| host.say("flood"));
    for host in &mut both {
        println!("paused: {}", host.line_within("paused ", limit));
    }
    both.iter_mut().for_each(|host| host.say("go"));
    for host in &mut both {
        let seen = figures(&host.line_within("ran ", limit));
        println!("{seen:?}");
        assert_eq!(
            (seen["other"], seen["disorder"]),
            (SENDERS * mutual::EACH, 0),
            "{seen:?}"
        );
        assert!(seen["pauses"] > 0 && seen["paused"] == 0, "{seen:?}");
    }
    both.iter_mut().for_each(|host| host.say("end"));
    both.into_iter().for_each(Process::end);
}
