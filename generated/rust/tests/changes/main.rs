//! What `zlink-codegen breaking` says of a change is what happens on the wire: each change of `table.txt` is applied, and
//! values, calls and bytes go between programs of both versions.
//!
//! Both versions of all changes are two modules, which `zlink-codegen/tests/generated.rs` writes from the table.

#![allow(clippy::panic, reason = "a test may fail")]

#[rustfmt::skip]
mod after;
#[rustfmt::skip]
mod before;
mod exchange;
mod fanouts;
mod languages;
mod services;
mod spots;
mod table;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use exchange::{Echo, Outcome, Way};
use services::Ended;
use table::{Row, Side};
use zlink_runtime::prelude::*;
use zlink_runtime::rt::{ChannelRoute, ChannelServer};
use zlink_runtime::testing::Cluster;

/// A call that cannot succeed has ended by then; its timeout is an hour.
const AT_ONCE: Duration = Duration::from_secs(1);

/// What `breaking` says of one change: code and level of each finding, sorted.
fn verdict(row: &Row) -> Vec<(String, String)> {
    let room = tempfile::tempdir().expect("a temporary folder");
    let path = |side, name| {
        let path = room.path().join(name);
        std::fs::write(&path, table::schema([row], side)).expect("writable");
        path.display().to_string()
    };
    let (old, new) = (path(Side::Before, "before.yaml"), path(Side::After, "after.yaml"));
    let args = ["zlink-codegen", "breaking", &old, &new, "--format", "json"];
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = zlink_codegen::cli::run(args, &mut out, &mut err);
    let findings: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
    let text = |item: &serde_json::Value, key: &str| item[key].as_str().unwrap_or_default().to_owned();
    let findings = findings.as_array().expect("an array");
    let mut all: Vec<_> = findings
        .iter()
        .map(|item| (text(item, "code"), text(item, "level")))
        .collect();
    all.sort();
    let breaks = all.iter().any(|(_, level)| level != "source");
    assert_eq!(
        code,
        u8::from(breaks),
        "{}: the exit code tells whether something breaks",
        row.name
    );
    all
}

/// Whether the verdict is that programs of the two versions do not understand each other.
fn breaks_the_wire(row: &Row) -> bool {
    verdict(row).iter().any(|(_, level)| level == "wire")
}

/// Changes that break nothing yet, but leave the way open to what does: the next use of the number is `id_reused`.
const LEAVES_A_TRAP: &str = "field_not_reserved";

#[test]
fn every_change_is_named_by_its_rules() {
    let rows = table::rows();
    let mut wrong = Vec::new();
    for row in &rows {
        let mut found: Vec<String> = verdict(row).into_iter().map(|(code, _)| code).collect();
        found.sort();
        if found != row.rules {
            wrong.push(format!("{}: {found:?} instead of {:?}", row.name, row.rules));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let names: BTreeSet<_> = rows.iter().map(|row| row.name).collect();
    assert_eq!(names.len(), rows.len(), "each name stands once");
    assert!(rows.len() >= 40, "{} changes", rows.len());
    let rules: BTreeSet<_> = rows.iter().flat_map(|row| row.rules.iter().copied()).collect();
    for wire in [
        "01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11", "12", "14", "16",
    ] {
        assert!(
            rules.contains(format!("ZL12{wire}").as_str()),
            "no change shows the rule ZL12{wire}"
        );
    }
}

#[test]
fn bytes_of_either_version_are_read_as_breaking_says() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for row in table::rows() {
        let Some(ways) = values::ways(row.name) else { continue };
        seen += 1;
        let harmless = ways.iter().all(|way| way.outcome == Outcome::Same);
        if harmless == breaks_the_wire(&row) && row.name != LEAVES_A_TRAP {
            let outcomes: Vec<_> = ways.iter().map(|way| &way.outcome).collect();
            wrong.push(format!(
                "{}: {:?}, and on the wire {outcomes:?}",
                row.name,
                verdict(&row)
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen >= 40, "{seen} changes of data");
}

/// REQ: MSG-106, MSG-606, MSG-906
#[tokio::test(start_paused = true)]
async fn a_call_between_the_versions_ends_at_once_with_a_named_error() -> Result<(), Box<dyn std::error::Error>> {
    const ROWS: ChannelName = ChannelName::from_static("rows");
    let ways: Vec<(&'static str, Way)> = table::rows()
        .iter()
        .flat_map(|row| values::ways(row.name).into_iter().flatten().map(|way| (row.name, way)))
        .enumerate()
        .map(|(at, (name, way))| (&*Box::leak(format!("{name}.{at}").into_boxed_str()), way))
        .collect();
    let server = ways
        .iter()
        .fold(ChannelServer::builder(ROWS, Echo), |server, (packet, way)| {
            way.serve(server, packet)
        });
    let server = server.build();
    let cluster = Cluster::new(1);
    cluster.node("server", move |host| {
        let server = server.clone();
        host.client_server(|channel| channel.serve(server).listen("tcp://server:1"))
    });
    cluster.node("client", |host| {
        host.client_server(|channel| channel.client(ROWS).connect("tcp://server:1"))
    });
    cluster.start_all().await?;
    cluster.ready(Duration::from_secs(5)).await;
    let route = ChannelRoute::new(&cluster.host("client"), ROWS);
    let (mut wrong, mut kinds) = (Vec::new(), BTreeMap::new());
    for (packet, way) in &ways {
        let start = tokio::time::Instant::now();
        let end = way.ask(&route, packet).await;
        *kinds.entry(end).or_insert(0) += 1;
        if end != way.end || start.elapsed() > AT_ONCE {
            wrong.push(format!(
                "{packet}: {end:?} after {:?}; the codec says {:?}",
                start.elapsed(),
                way.end
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        kinds[&None] > 20 && kinds[&Some(ErrorKind::ProtocolError)] > 20,
        "{kinds:?}"
    );
    Ok(cluster.shutdown().await?)
}

/// REQ: MSG-106, MSG-301, MSG-302, MSG-906
#[tokio::test(start_paused = true)]
async fn services_of_either_version_are_called_as_breaking_says() -> Result<(), Box<dyn std::error::Error>> {
    let (older, newer) = (services::older_at_newer().await?, services::newer_at_older().await?);
    // What ends with a word must be the word of the method that was meant; `query` was called `ask`.
    let meant = |name: &str| match name {
        "methods_swapped" => vec!["a"],
        "method_added" | "method_removed" => vec!["keep"],
        "method_renamed" => vec!["ask", "query"],
        // Nobody has to set a key.
        "key_removed" => vec!["ask", "nothing"],
        _ => vec!["ask"],
    };
    let fine = |name: &str, ended: &Ended| {
        ended
            .answer
            .as_ref()
            .is_ok_and(|word| meant(name).contains(&word.as_str()))
    };
    let mut wrong = Vec::new();
    for (name, ended) in older
        .iter()
        .chain(&newer)
        .flat_map(|(name, all)| all.iter().map(move |ended| (name, ended)))
    {
        if ended.took > AT_ONCE {
            wrong.push(format!("{name} took {:?}", ended.took));
        }
    }
    let mut seen = BTreeSet::new();
    let called = |row: &&Row| values::ways(row.name).is_none() && !row.changes("fanouts");
    for row in table::rows().iter().filter(called) {
        let ended: Vec<_> = [&older, &newer]
            .iter()
            .filter_map(|endings| endings.get(row.name))
            .flatten()
            .collect();
        seen.insert(row.name);
        let harmless = !ended.is_empty() && ended.iter().all(|ended| fine(row.name, ended));
        if ended.is_empty() || harmless == breaks_the_wire(row) {
            wrong.push(format!("{}: {:?}, and on the wire {ended:?}", row.name, verdict(row)));
        }
    }
    let kinds = |name: &str| -> Vec<ErrorKind> {
        let all = [&older, &newer]
            .into_iter()
            .filter_map(|endings| endings.get(name))
            .flatten();
        all.filter_map(|ended| ended.answer.as_ref().err().copied()).collect()
    };
    for (name, expected) in [
        ("new_method_at_an_older_server", vec![ErrorKind::NotFound]),
        ("method_removed", vec![ErrorKind::NotFound]),
        ("method_renamed_on_the_wire", vec![ErrorKind::NotFound; 2]),
        ("request_became_send", vec![ErrorKind::NotFound]),
        ("request_is_another", vec![ErrorKind::ProtocolError; 2]),
        ("reply_is_another", vec![ErrorKind::ProtocolError; 2]),
        ("service_renamed", vec![ErrorKind::NotFound; 2]),
        ("target_changed", vec![ErrorKind::NotFound; 2]),
        ("methods_swapped", vec![]),
        ("spot_is_made_otherwise", vec![ErrorKind::ProtocolError]),
    ] {
        if kinds(name) != expected {
            wrong.push(format!("{name} ended with {:?} instead of {expected:?}", kinds(name)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen.len() >= 12, "{seen:?}");
    Ok(())
}

/// REQ: CH-902, CH-905
#[tokio::test(start_paused = true)]
async fn events_between_the_versions_are_heard_as_breaking_says() -> Result<(), Box<dyn std::error::Error>> {
    let mut heard = fanouts::Heard::new();
    fanouts::older_publish(&mut heard).await?;
    fanouts::newer_publish(&mut heard).await?;
    let rows = table::rows();
    let rows: Vec<_> = rows.iter().filter(|row| row.changes("fanouts")).collect();
    let mut wrong = Vec::new();
    for row in &rows {
        let (published, heard) = heard.get(row.name).copied().unwrap_or_default();
        if published == 0 || (published == heard) == breaks_the_wire(row) {
            wrong.push(format!(
                "{}: {:?}, and {heard} of {published} were heard",
                row.name,
                verdict(row)
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // One that is gone is the only one that is lost; of one that goes on within its topic, only one direction is.
    let parts = ["event_removed", "topic_goes_on", "topic_changed", "event_is_another"].map(|name| heard[name]);
    assert_eq!(parts, [(3, 2), (2, 1), (2, 0), (2, 0)]);
    assert_eq!(rows.len(), heard.len());
    Ok(())
}
