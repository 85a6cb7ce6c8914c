//! Several processes at one file: nothing is lost, nothing is torn, and one that is killed leaves the file usable.
//!
//! The processes are this test binary itself, told by its environment what to do.

use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tempfile::TempDir;
use zlink_runtime::location::{Condition, Key, LocationStore, Mutation, Scan, Scanned, SqliteStore, StoreError};

use crate::kit::{batch, key, put, value, write};

const FILE: &str = "ZLINK_TEST_STORE_FILE";
const NAME: &str = "ZLINK_TEST_STORE_NAME";
const OPERATIONS: &str = "ZLINK_TEST_STORE_OPERATIONS";
/// Numbers that everybody counts up.
const NUMBERS: u64 = 4;
/// Keys that one batch writes alike.
const TWINS: [&str; 4] = ["twin/a", "twin/b", "twin/c", "twin/d"];
/// Tasks of one process.
const TASKS: u64 = 16;

fn child(role: &str, file: &Path, name: &str, operations: u64) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", role, "--ignored", "--nocapture", "--test-threads=1"])
        .env(FILE, file)
        .env(NAME, name)
        .env(OPERATIONS, operations.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines)
}

/// What the process was told, where it is one of the children.
fn told(what: &str) -> Option<String> {
    std::env::var(what).ok()
}

/// A number in a line that a child prints; libtest's own words may stand before it.
fn number_after(line: &str, word: &str) -> Option<u64> {
    line.split_once(word)?.1.split_whitespace().next()?.parse().ok()
}

/// What one process did.
#[derive(Default)]
struct Tally {
    counted: AtomicU64,
    conflicts: AtomicU64,
    reads: AtomicU64,
    waited: AtomicU64,
}

impl Tally {
    fn add(&self, to: &AtomicU64) {
        to.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a process of `processes_agree`"]
async fn child_that_agrees() {
    let (Some(file), Some(name), Some(operations)) = (told(FILE), told(NAME), told(OPERATIONS)) else {
        return;
    };
    let operations: u64 = operations.parse().unwrap();
    let store = SqliteStore::open(file).await.unwrap();
    let tally = Arc::new(Tally::default());
    let mut tasks = tokio::task::JoinSet::new();
    let begun = Instant::now();
    for task in 0..TASKS {
        let (store, tally, name) = (store.clone(), Arc::clone(&tally), format!("{name}{task}"));
        tasks.spawn(async move {
            for round in 0..operations / TASKS {
                operate(&store, &tally, &name, round).await;
            }
        });
    }
    tasks.join_all().await;
    let [counted, conflicts, reads, waited] =
        [&tally.counted, &tally.conflicts, &tally.reads, &tally.waited].map(|one| one.load(Ordering::Relaxed));
    let millis = begun.elapsed().as_millis();
    println!("\ncounted {counted} conflicts {conflicts} reads {reads} waited {waited} millis {millis}");
}

/// One operation: half count a number up or write the twins, the others look whether all is whole.
async fn operate(store: &SqliteStore, tally: &Tally, name: &str, round: u64) {
    let done = match round % 8 {
        0 | 3 | 6 => count_up(store, tally, round % NUMBERS).await,
        1 => {
            let twins: Vec<_> = TWINS.iter().map(|twin| put(twin, format!("{name} {round}"))).collect();
            write(store, &batch([], twins)).await.map(drop)
        }
        2 => {
            // Something that comes and goes between the twins, so that pages change.
            let own = format!("twin/b/{name}");
            let change = if round % 16 < 8 {
                put(own, "x")
            } else {
                Mutation::Delete(key(own))
            };
            write(store, &batch([], [change])).await.map(drop)
        }
        4 => scan_twins(store, tally).await,
        _ => read_twins(store, tally).await,
    };
    match done {
        // On a busy machine a turn may not come in time; then nothing was done.
        Err(StoreError::DeadlineExceeded(_)) => tally.add(&tally.waited),
        done => done.unwrap(),
    }
}

async fn count_up(store: &SqliteStore, tally: &Tally, number: u64) -> Result<(), StoreError> {
    let name = format!("number/{number}");
    let (old, condition) = match store.read(&key(&name)).await?.found {
        None => (0, Condition::Missing(key(&name))),
        Some(stored) => {
            let old: u64 = std::str::from_utf8(&stored.value).unwrap().parse().unwrap();
            (old, Condition::Version(key(&name), stored.revision))
        }
    };
    let written = write(store, &batch([condition], [put(&name, (old + 1).to_string())])).await?;
    tally.add(if written.is_some() {
        &tally.counted
    } else {
        &tally.conflicts
    });
    Ok(())
}

async fn read_twins(store: &SqliteStore, tally: &Tally) -> Result<(), StoreError> {
    let keys: Vec<Key> = TWINS.iter().map(key).collect();
    let found = store.read_many(&keys).await?.found;
    assert!(found.iter().all(|one| *one == found[0]), "torn: {found:?}");
    tally.add(&tally.reads);
    Ok(())
}

async fn scan_twins(store: &SqliteStore, tally: &Tally) -> Result<(), StoreError> {
    let Scanned::Page(page) = store.scan(&Scan::new("twin/", 1000).unwrap()).await? else {
        panic!("a first page has expired");
    };
    let keys: Vec<_> = page.entries.iter().map(|(key, _)| key.as_str()).collect();
    assert!(keys.is_sorted(), "{keys:?}");
    let twins: Vec<_> = page
        .entries
        .iter()
        .filter(|(key, _)| TWINS.contains(&key.as_str()))
        .collect();
    assert!(twins.is_empty() || twins.len() == TWINS.len(), "torn: {twins:?}");
    assert!(twins.iter().all(|(_, stored)| *stored == twins[0].1), "torn: {twins:?}");
    assert!(
        page.entries
            .iter()
            .all(|(_, stored)| Some(stored.revision) <= page.revision)
    );
    tally.add(&tally.reads);
    Ok(())
}

async fn processes_agree(processes: usize, operations: u64) {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("s.db");
    let begun = Instant::now();
    let names = ["left ", "right ", "third "];
    let children: Vec<_> = names[..processes]
        .iter()
        .map(|name| child("crowd::child_that_agrees", &file, name, operations))
        .collect();
    let mut counted = 0;
    for (mut child, lines) in children {
        let lines: Vec<_> = lines.map(Result::unwrap).collect();
        assert!(child.wait().unwrap().success(), "{lines:#?}");
        let line = lines.iter().find(|line| line.contains("counted")).unwrap();
        counted += number_after(line, "counted ").unwrap();
        println!("{line}");
    }
    let took = begun.elapsed();
    let store = SqliteStore::open(&file).await.unwrap();
    let mut sum = 0;
    for number in 0..NUMBERS {
        if let Some(bytes) = value(&store, &format!("number/{number}")).await.unwrap() {
            sum += std::str::from_utf8(&bytes).unwrap().parse::<u64>().unwrap();
        }
    }
    assert_eq!(sum, counted, "an update was lost");
    assert!(counted > operations / 100, "hardly anybody counted: {counted}");
    let all = operations * u64::try_from(processes).unwrap();
    println!(
        "{processes} processes, {operations} operations each: {took:?}, {} per second",
        all * 1000 / u64::try_from(took.as_millis()).unwrap()
    );
}

/// REQ: LS-061
#[tokio::test]
async fn two_processes_lose_no_update_and_tear_no_batch() {
    processes_agree(2, 1_600).await;
}

/// REQ: LS-061
#[tokio::test]
#[ignore = "long"]
async fn soak_two_processes_and_100_000_operations_each() {
    processes_agree(2, 100_000).await;
}

#[tokio::test]
#[ignore = "a process of `killed_processes`"]
async fn child_that_is_killed() {
    let (Some(file), Some(name)) = (told(FILE), told(NAME)) else {
        return;
    };
    let store = SqliteStore::open(file).await.unwrap();
    for number in 0_u64.. {
        let pair = [
            put(format!("{name}/a"), number.to_string()),
            put(format!("{name}/z"), number.to_string()),
        ];
        // Of different sizes, so that a kill may come in the middle of one.
        let body = vec![7; usize::try_from(number % 5).unwrap() * 20_000];
        let mutations = [pair.to_vec(), vec![put(format!("{name}/m/{}", number % 50), body)]].concat();
        match store.write(&batch([], mutations)).await {
            Ok(_) => println!("\nanswered {number}"),
            Err(StoreError::DeadlineExceeded(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Reads what the child says until it has answered `enough` writes, or for good; the last it answered.
fn answered(lines: &mut Lines<BufReader<ChildStdout>>, enough: u64) -> Option<u64> {
    let numbers = lines
        .map_while(Result::ok)
        .filter_map(|line| number_after(&line, "answered "));
    let mut last = None;
    for number in numbers {
        last = Some(number);
        if number >= enough {
            break;
        }
    }
    last
}

/// SIGKILL comes after `enough` answers and some more, as fast as the machine happens to be.
async fn killed_processes(rounds: u64) {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("s.db");
    let mut lost_logs = 0;
    for round in 0..rounds {
        let name = format!("victim {round}");
        let (mut victim, mut victims) = child("crowd::child_that_is_killed", &file, &name, 0);
        let (mut other, mut others) = child("crowd::child_that_is_killed", &file, &format!("other {round}"), 0);
        if round % 5 == 4 {
            // Before it has said anything: while it starts, opens the file, or recovers the log.
            let moment = Instant::now() + std::time::Duration::from_micros(round * 997 % 30_000);
            while Instant::now() < moment {
                std::thread::yield_now();
            }
        } else {
            answered(&mut victims, round * 7 % 40).expect("the victim writes");
        }
        victim.kill().unwrap();
        victim.wait().unwrap();
        let last = answered(&mut victims, u64::MAX);
        // The other one, which lived through it, goes on.
        let now = answered(&mut others, 5).expect("the other one writes");
        answered(&mut others, now + 20).expect("the other one goes on");
        other.kill().unwrap();
        other.wait().unwrap();
        let other_last = answered(&mut others, u64::MAX);
        lost_logs += u64::from(file.with_extension("db-wal").exists());
        // Both are dead, the log is still there: the next one recovers it.
        let store = SqliteStore::open(&file).await.unwrap();
        for (name, last) in [(name, last), (format!("other {round}"), other_last)] {
            let keys = ["a", "z"].map(|end| key(format!("{name}/{end}")));
            let found = store.read_many(&keys).await.unwrap().found;
            assert_eq!(found[0], found[1], "round {round}: torn");
            let number = found[0]
                .as_ref()
                .map(|one| std::str::from_utf8(&one.value).unwrap().parse::<u64>().unwrap());
            assert!(
                number >= last,
                "round {round}: {last:?} was answered, {number:?} is there"
            );
        }
        write(&store, &batch([], [put("alive", round.to_string())]))
            .await
            .unwrap()
            .unwrap();
    }
    println!("{rounds} rounds, two kills each; the log was left behind in {lost_logs}");
    assert!(lost_logs > 0, "nobody was killed in use");
}

/// REQ: LS-061, LS-063
#[tokio::test]
async fn a_killed_process_leaves_a_usable_file() {
    killed_processes(6).await;
}

/// REQ: LS-061, LS-063
#[tokio::test]
#[ignore = "long"]
async fn soak_killed_processes_leave_a_usable_file() {
    killed_processes(300).await;
}
