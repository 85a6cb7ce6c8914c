//! A Redis server that restarts, stands still, forgets, is full, or is none: what is answered, and what never is.

use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};
use zlink_runtime::Host;
use zlink_runtime::location::{
    BlobPut, BlobRef, BlobStore, Condition, LocationStore, RedisBlobStore, RedisStore, Scan, Scanned, StoreError,
};

use crate::kit::{batch, key, put, value, write};
use crate::server::Server;

async fn refusal(address: &str, namespace: &str) -> String {
    RedisStore::open(address, namespace).await.unwrap_err().to_string()
}

/// Until the store answers again.
async fn again(store: &RedisStore) {
    let until = Instant::now() + Duration::from_secs(30);
    while let Err(error) = store.read(&key("a")).await {
        assert!(Instant::now() < until, "{error}");
        assert!(!matches!(error, StoreError::Lost(_)), "{error}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// REQ: LS-067
#[tokio::test]
async fn what_was_answered_outlives_the_server() {
    let mut server = Server::new();
    let store = RedisStore::open(&server.address(), "a").await.unwrap();
    let first = write(&store, &batch([], [put("a", "1")])).await.unwrap().unwrap();
    server.kill();
    assert!(matches!(store.read(&key("a")).await, Err(StoreError::Unavailable(_))));
    let refused = store.write(&batch([], [put("a", "2")])).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    server.start();
    again(&store).await;
    assert_eq!(value(&store, "a").await.unwrap().unwrap(), "1");
    let same = Condition::Version(key("a"), first);
    let second = write(&store, &batch([same], [put("a", "2")])).await.unwrap().unwrap();
    assert!(second > first);
}

/// REQ: LS-067, LS-024
#[tokio::test]
async fn each_user_is_told_once_that_the_server_has_lost_all() {
    let server = Server::new();
    let stores = [
        RedisStore::open(&server.address(), "a").await.unwrap(),
        RedisStore::open(&server.address(), "a").await.unwrap(),
    ];
    let first = write(&stores[0], &batch([], [put("a", "1")])).await.unwrap().unwrap();
    server.command(&["FLUSHALL"]).await;
    // Nothing is done by the operation that finds it, not even where its conditions would hold.
    let lost = write(&stores[0], &batch([Condition::Missing(key("a"))], [put("a", "2")])).await;
    assert!(matches!(lost, Err(StoreError::Lost(_))), "{lost:?}");
    assert_eq!(value(&stores[0], "a").await, Ok(None));
    let again = write(&stores[0], &batch([Condition::Missing(key("a"))], [put("a", "2")]))
        .await
        .unwrap();
    assert!(again.unwrap() > first, "a revision never recurs");
    let lost = value(&stores[1], "a").await;
    assert!(matches!(lost, Err(StoreError::Lost(_))), "{lost:?}");
    assert_eq!(value(&stores[1], "a").await.unwrap().unwrap(), "2");
}

/// The operation that finds a loss may be nobody's any more, and is one clone's: each is told all the same.
///
/// REQ: LS-067
#[tokio::test]
async fn each_clone_is_told_of_a_loss_that_was_found_for_nobody() {
    let server = Server::new();
    let store = RedisStore::open(&server.address(), "a").await.unwrap();
    let others = [store.clone(), store.clone()];
    write(&store, &batch([], [put("a", "1")])).await.unwrap().unwrap();
    server.command(&["FLUSHALL"]).await;
    let sought = key("a");
    // It goes on in the thread of the store.
    let mut given_up = store.read(&sought);
    assert!(poll_fn(|cx| Poll::Ready(given_up.as_mut().poll(cx))).await.is_pending());
    drop(given_up);
    for store in [&others[0], &store, &others[1]] {
        let lost = value(store, "a").await;
        assert!(matches!(lost, Err(StoreError::Lost(_))), "{lost:?}");
        assert_eq!(value(store, "a").await, Ok(None));
    }
}

/// REQ: LS-067
#[tokio::test]
async fn a_server_without_the_latest_is_taken_for_one_that_lost_it() {
    let server = Server::new();
    let store = RedisStore::open(&server.address(), "a").await.unwrap();
    let first = write(&store, &batch([], [put("a", "1")])).await.unwrap().unwrap();
    let second = write(&store, &batch([], [put("b", "1")])).await.unwrap().unwrap();
    // As a replica that took over before the second came to it.
    let earlier = first.get().to_string();
    server.command(&["HSET", "{zlink:a}:state", "revision", &earlier]).await;
    let lost = store.write(&batch([], [put("c", "1")])).await;
    assert!(matches!(lost, Err(StoreError::Lost(_))), "{lost:?}");
    assert_eq!(value(&store, "c").await, Ok(None));
    let third = write(&store, &batch([], [put("c", "1")])).await.unwrap().unwrap();
    assert!(third > second, "the clock stands beside the counter");
}

/// REQ: LS-065
#[tokio::test]
async fn a_server_that_stands_still_is_waited_for_until_the_timeout() {
    let server = Server::new();
    let timeout = Duration::from_millis(300);
    let store = RedisStore::open_with_timeout(&server.address(), "a", timeout)
        .await
        .unwrap();
    let written = batch([Condition::Missing(key("a"))], [put("a", "1")]);
    kill_process(server.process(), Signal::STOP).unwrap();
    let unknown = store.write(&written).await;
    assert!(
        matches!(unknown, Err(StoreError::Unknown(_))),
        "it was sent: {unknown:?}"
    );
    let late = store.read(&key("a")).await;
    assert!(matches!(late, Err(StoreError::DeadlineExceeded(_))), "{late:?}");
    let late = store.write(&written).await;
    assert!(
        matches!(late, Err(StoreError::DeadlineExceeded(_))),
        "there was no connection: {late:?}"
    );
    kill_process(server.process(), Signal::CONT).unwrap();
    again(&store).await;
    // The first was applied late, or is applied now; never both.
    let _ = write(&store, &written).await.unwrap();
    assert_eq!(value(&store, "a").await.unwrap().unwrap(), "1");
    assert_eq!(write(&store, &written).await, Ok(None));
}

#[tokio::test]
async fn a_full_server_applies_no_half_of_a_batch_and_can_be_read() {
    let server = Server::new();
    let store = RedisStore::open(&server.address(), "a").await.unwrap();
    write(&store, &batch([], [put("a", "1")])).await.unwrap();
    server.command(&["CONFIG", "SET", "maxmemory", "1"]).await;
    let full = store.write(&batch([], [put("a", "2"), put("b", "2")])).await;
    assert!(matches!(full, Err(StoreError::Unavailable(_))), "{full:?}");
    assert_eq!(value(&store, "a").await.unwrap().unwrap(), "1");
    assert_eq!(value(&store, "b").await, Ok(None));
    server.command(&["CONFIG", "SET", "maxmemory", "0"]).await;
    write(&store, &batch([], [put("a", "2"), put("b", "2")]))
        .await
        .unwrap()
        .unwrap();
}

/// REQ: LS-067
#[tokio::test]
async fn a_server_that_may_forget_is_refused() {
    let forgets = Server::with(&[]);
    let refused = refusal(&forgets.address(), "a").await;
    assert!(refused.contains("appendonly yes"), "{refused}");
    let evicts = Server::with(&["--appendonly", "yes", "--maxmemory-policy", "allkeys-lru"]);
    let refused = refusal(&evicts.address(), "a").await;
    assert!(refused.contains("noeviction"), "{refused}");
}

#[tokio::test]
async fn a_wrong_address_says_so_and_keeps_its_secret() {
    let mut server = Server::new();
    let secret = server.address().replace("//", "//me:hush@");
    for (address, namespace, part) in [
        (secret.as_str(), "a", "password"),
        (&server.address(), "a b", "namespace"),
        (&server.address(), "", "namespace"),
        ("redis://:none", "a", "address"),
    ] {
        let refused = refusal(address, namespace).await;
        assert!(
            refused.to_lowercase().contains(part) && !refused.contains("hush"),
            "{refused}"
        );
    }
    server.kill();
    let refused = refusal(&secret, "a").await;
    assert!(
        refused.contains("unavailable") && !refused.contains("hush"),
        "{refused}"
    );
}

/// REQ: LS-069
#[tokio::test]
async fn namespaces_of_one_server_do_not_meet() {
    let server = Server::new();
    let [a, b] = [
        RedisStore::open(&server.address(), "a").await.unwrap(),
        RedisStore::open(&server.address(), "b").await.unwrap(),
    ];
    write(&a, &batch([], [put("x", "1")])).await.unwrap();
    assert_eq!(value(&b, "x").await, Ok(None));
    let blobs = RedisBlobStore::open(&server.address(), "a").await.unwrap();
    let name = BlobRef::new("x").unwrap();
    let stored = blobs
        .put(&name, vec![7; 1 << 20].into(), Duration::from_secs(60))
        .await
        .unwrap();
    assert!(matches!(stored, BlobPut::Stored { .. }));
    let Ok(Scanned::Page(page)) = a.scan(&Scan::new("", 10).unwrap()).await else {
        panic!("no page");
    };
    assert_eq!(page.entries.len(), 1);
}

/// A key of the namespace that holds something else is a mistake of whoever chose it: a start says so, and in use no half
/// of a batch is applied.
///
/// REQ: LS-061, LS-067
#[tokio::test]
async fn a_namespace_that_is_in_use_for_something_else_is_refused() {
    let server = Server::new();
    for part in ["state", "records", "order", "expiry", "batches"] {
        let name = format!("{{zlink:{part}}}:{part}");
        server.command(&["SET", &name, "mine"]).await;
        let text = refusal(&server.address(), part).await;
        assert!(text.contains("another namespace") && text.contains(&name), "{text}");
    }
    let host = Host::builder().location_store(format!("{}?namespace=order", server.address()));
    let text = host.start().await.unwrap_err().to_string();
    assert!(text.contains("another namespace"), "{text}");

    let store = RedisStore::open(&server.address(), "a").await.unwrap();
    let first = write(&store, &batch([], [put("a", "1")])).await.unwrap().unwrap();
    server.command(&["RENAME", "{zlink:a}:order", "{zlink:a}:away"]).await;
    server.command(&["SET", "{zlink:a}:order", "mine"]).await;
    for _ in 0..2 {
        let torn = store.write(&batch([], [put("a", "2"), put("b", "2")])).await;
        let Err(StoreError::Unavailable(text)) = torn else {
            panic!("{torn:?}");
        };
        assert!(text.contains("another namespace"), "{text}");
    }
    server.command(&["RENAME", "{zlink:a}:away", "{zlink:a}:order"]).await;
    let same = Condition::Version(key("a"), first);
    write(&store, &batch([same, Condition::Missing(key("b"))], [put("b", "3")]))
        .await
        .unwrap()
        .expect("nothing of it was applied");

    let blobs = RedisBlobStore::open(&server.address(), "a").await.unwrap();
    server.command(&["SET", "{zlink:a}:blob:x", "mine"]).await;
    let name = BlobRef::new("x").unwrap();
    let refused = blobs.get(&name).await.unwrap_err().to_string();
    assert!(refused.contains("another namespace"), "{refused}");
}

/// What expired is swept out by later batches, and counts as missing before that.
#[tokio::test]
async fn what_expired_leaves_the_server() {
    let server = Server::new();
    let store = RedisStore::open(&server.address(), "a").await.unwrap();
    for at in 0..40 {
        let mutation = zlink_runtime::location::Mutation::Put {
            key: key(format!("{at}")),
            value: "x".into(),
            retention: Some(Duration::from_millis(1)),
        };
        write(&store, &batch([], [mutation])).await.unwrap();
    }
    let client = redis::Client::open(server.address()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        write(&store, &batch([], [put("stays", "x")])).await.unwrap();
        let kept: [u64; 3] = [
            redis::cmd("HLEN")
                .arg("{zlink:a}:records")
                .query_async(&mut connection)
                .await
                .unwrap(),
            redis::cmd("ZCARD")
                .arg("{zlink:a}:order")
                .query_async(&mut connection)
                .await
                .unwrap(),
            redis::cmd("ZCARD")
                .arg("{zlink:a}:expiry")
                .query_async(&mut connection)
                .await
                .unwrap(),
        ];
        if kept == [1, 1, 0] {
            break;
        }
        assert!(Instant::now() < until, "{kept:?}");
    }
}

/// Two hosts that know each other only through the server, which loses all once.
#[tokio::test]
async fn a_host_holds_its_lease_again_after_the_server_lost_it() {
    let server = Server::new();
    let address = format!("{}?namespace=shop", server.address());
    let host = Host::builder().location_store(address).start().await.unwrap();
    let store = RedisStore::open(&server.address(), "shop").await.unwrap();
    let leases = async || match store.scan(&Scan::new("lease/", 10).unwrap()).await {
        Ok(Scanned::Page(page)) => page.entries.len(),
        _ => 0,
    };
    assert_eq!(leases().await, 1);
    server.command(&["FLUSHALL"]).await;
    let until = Instant::now() + Duration::from_secs(60);
    while leases().await == 0 {
        assert!(Instant::now() < until, "the lease does not come back");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    host.shutdown().await.unwrap();
}
