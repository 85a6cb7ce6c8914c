//! What stores must keep to when far more is asked of them than they can do, or when they have forgotten.

use std::time::{Duration, Instant};

use rusqlite::Connection;
use tempfile::TempDir;
use zlink_runtime::location::{
    Batch, LocationStore, MemoryStore, Mutation, RedisStore, SqliteStore, StoreError, StoreSource,
};

use crate::kit::{batch, key, put, value, write};
use crate::server::Server;

/// REQ: LS-065
#[tokio::test]
async fn the_wait_for_a_place_in_the_queue_counts_too() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("s.db");
    let timeout = Duration::from_secs(1);
    let store = SqliteStore::open_with_timeout(&path, timeout).await.unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let begun = Instant::now();
    let mut writes = tokio::task::JoinSet::new();
    for at in 0..2500 {
        let store = store.clone();
        writes.spawn(async move { store.write(&batch([], [put(format!("{at}"), "x")])).await });
    }
    let answers = writes.join_all().await;
    let took = begun.elapsed();
    for answer in answers {
        assert!(matches!(answer, Err(StoreError::DeadlineExceeded(_))), "{answer:?}");
    }
    assert!(took >= timeout && took < 5 * timeout, "{took:?}");
    other.execute_batch("ROLLBACK").unwrap();
    assert!(write(&store, &batch([], [put("later", "x")])).await.unwrap().is_some());
    assert_eq!(value(&store, "2499").await, Ok(None));
}

/// REQ: LS-067
#[tokio::test]
async fn a_loss_is_told_even_where_another_user_has_written_since() {
    let server = Server::new();
    let a = RedisStore::open(&server.address(), "a").await.unwrap();
    let b = RedisStore::open(&server.address(), "a").await.unwrap();
    let first = write(&a, &batch([], [put("a", "1")])).await.unwrap().unwrap();
    assert_eq!(value(&b, "a").await.unwrap().unwrap(), "1");
    let second = write(&a, &batch([], [put("b", "1")])).await.unwrap().unwrap();
    // As a replica that took over before the second came to it.
    let (earlier, later) = (first.get().to_string(), second.get().to_string());
    server.command(&["HSET", "{zlink:a}:state", "revision", &earlier]).await;
    server.command(&["HDEL", "{zlink:a}:records", "b"]).await;
    server.command(&["ZREM", "{zlink:a}:order", "b"]).await;
    server.command(&["ZREM", "{zlink:a}:batches", &later]).await;
    write(&b, &batch([], [put("c", "1")])).await.unwrap().unwrap();
    let lost = a.read(&key("b")).await;
    assert!(matches!(lost, Err(StoreError::Lost(_))), "{lost:?}");
    assert_eq!(value(&a, "b").await, Ok(None), "it is told once");
    // Whoever was only slow has lost nothing.
    for _ in 0..10 {
        write(&a, &batch([], [put("d", "1")])).await.unwrap().unwrap();
    }
    assert_eq!(value(&b, "c").await.unwrap().unwrap(), "1");
}

#[test]
fn a_mistyped_address_keeps_its_secret() {
    for address in [
        "Redis://me:hush@host:6379",
        "valkey://me:hush@host:6379",
        "redis:/me:hush@host:6379",
        "redis:me:hush@host:6379",
    ] {
        let source = StoreSource::from(address);
        let (refused, debug) = (source.check().unwrap_err().to_string(), format!("{source:?}"));
        assert!(!refused.contains("hush") && refused.contains("host:6379"), "{refused}");
        assert!(!debug.contains("hush"), "{debug}");
    }
    let file = StoreSource::from("sqlite://me@home/a.db?");
    assert!(file.check().unwrap_err().to_string().contains("me@home"));
}

/// The longest time that can be given is no time at which anything breaks.
///
/// REQ: LS-065
#[tokio::test]
async fn an_endless_timeout_is_one() {
    let folder = TempDir::new().unwrap();
    let file = SqliteStore::open_with_timeout(folder.path().join("s.db"), Duration::MAX).await;
    let file = file.unwrap();
    assert!(write(&file, &batch([], [put("a", "1")])).await.unwrap().is_some());
    let server = Server::new();
    let store = RedisStore::open_with_timeout(&server.address(), "a", Duration::MAX).await;
    let store = store.unwrap();
    assert!(write(&store, &batch([], [put("a", "1")])).await.unwrap().is_some());
}

/// What is to be kept for as long as can be said is there.
///
/// REQ: LS-060
#[tokio::test]
async fn an_endless_retention_is_one() {
    let folder = TempDir::new().unwrap();
    let server = Server::new();
    let stores: [Box<dyn LocationStore>; 3] = [
        Box::new(MemoryStore::new()),
        Box::new(SqliteStore::open(folder.path().join("s.db")).await.unwrap()),
        Box::new(RedisStore::open(&server.address(), "a").await.unwrap()),
    ];
    for store in stores {
        for retention in [
            Duration::MAX,
            Duration::from_millis(u64::MAX),
            Duration::from_millis(1 << 62),
        ] {
            let kept = Mutation::Put {
                key: key("a"),
                value: "1".into(),
                retention: Some(retention),
            };
            let Ok(endless) = Batch::new([], [kept]) else { continue };
            assert!(write(&*store, &endless).await.unwrap().is_some(), "{store:?}");
            let found = value(&*store, "a").await;
            assert_eq!(found, Ok(Some("1".into())), "{retention:?} of {store:?}");
        }
    }
}
