//! Cases about single values: bytes, keys, observation, retention.

use std::time::Duration;

use bytes::Bytes;

use super::kit::{apply, check, deadline, failed, key, keys, pause, put, put_for, read, same, write};
use super::{Bench, Verdict};
use crate::location::{Condition, Key, StoreTime};

pub(super) async fn what_is_written_is_read(bench: &Bench<'_>) -> Verdict {
    let store = bench.open().await?;
    same("a read of nothing", read(&store, "a").await?, None)?;
    let every_byte: Vec<u8> = (0..=255).collect();
    for value in [Bytes::new(), Bytes::from(every_byte), Bytes::from(vec![0; 70_000])] {
        let revision = apply(&store, vec![put("a", value.clone())?]).await?;
        let found = read(&store, "a").await?.ok_or("a value that was written is missing")?;
        same("the length", found.value.len(), value.len())?;
        check(found.value == value, || "the bytes are others".to_owned())?;
        same("the version", found.revision, revision)?;
        same("the expiry", found.expiry, None)?;
    }
    Ok(())
}

/// Distinct for whoever compares bytes, and alike for somebody who does not.
const ALIKE: [&str; 11] = [
    "A",
    "a",
    "a ",
    "a\0",
    "a\0b",
    "a%",
    "a_",
    "\u{e4}",
    "a\u{308}",
    "\u{10ffff}",
    "a'\"\\;--",
];

pub(super) async fn keys_are_exact(bench: &Bench<'_>) -> Verdict {
    let store = bench.open().await?;
    let mutations = ALIKE
        .iter()
        .map(|name| put(name, name.to_owned()))
        .collect::<Result<_, _>>()?;
    apply(&store, mutations).await?;
    for name in ALIKE {
        let found = read(&store, name).await?.map(|stored| stored.value);
        same(
            "the value of its own key",
            found,
            Some(Bytes::from_static(name.as_bytes())),
        )?;
    }
    let mut sorted = ALIKE.map(str::to_owned);
    sorted.sort_unstable();
    same("all keys", keys(&store, "", 3).await?, sorted.to_vec())
}

pub(super) async fn one_observation_in_the_order_of_the_keys(bench: &Bench<'_>) -> Verdict {
    let store = bench.open().await?;
    apply(&store, vec![put("a", "1")?, put("b", "2")?]).await?;
    let names: Vec<Key> = ["b", "none", "a", "b"].iter().map(key).collect::<Result<_, _>>()?;
    let found = store.read_many(&names).await.map_err(failed("a read"))?.found;
    let values: Vec<_> = found
        .iter()
        .map(|one| one.as_ref().map(|stored| &*stored.value))
        .collect();
    same(
        "the values",
        values,
        vec![Some(b"2".as_slice()), None, Some(b"1"), Some(b"2")],
    )?;
    let none = store.read_many(&[]).await.map_err(failed("a read of nothing"))?;
    same("no keys", none.found.len(), 0)
}

pub(super) async fn values_are_their_own(bench: &Bench<'_>) -> Verdict {
    let store = bench.open().await?;
    let input = Bytes::from(b"as it was written".to_vec());
    apply(&store, vec![put("a", input.clone())?]).await?;
    let held = read(&store, "a").await?.ok_or("a value that was written is missing")?;
    // Where the store kept no reference of its own, the buffer is ours again.
    if let Ok(mut buffer) = input.try_into_mut() {
        buffer.fill(0);
    }
    let found = read(&store, "a").await?.ok_or("a value that was written is missing")?;
    same(
        "after the input was overwritten",
        found.value,
        Bytes::from_static(b"as it was written"),
    )?;
    apply(&store, vec![put("a", "something else")?]).await?;
    same(
        "a value read before",
        held.value,
        Bytes::from_static(b"as it was written"),
    )
}

pub(super) async fn expired_is_missing(bench: &Bench<'_>) -> Verdict {
    let store = bench.open().await?;
    let short = Duration::from_millis(150);
    apply(
        &store,
        vec![
            put_for("e/short", "x", short)?,
            put_for("e/long", "x", Duration::from_secs(3600))?,
        ],
    )
    .await?;
    let before = read(&store, "e/long").await?.ok_or("a value has expired early")?;
    check(before.expiry.is_some(), || {
        "a value with a retention has no expiry".to_owned()
    })?;
    let until = deadline();
    let mut version = None;
    loop {
        let answer = store.read(&key("e/short")?).await.map_err(failed("a read"))?;
        let Some(stored) = answer.found else { break };
        let expiry = stored.expiry.ok_or("a value with a retention has no expiry")?;
        check(answer.now < expiry, || {
            format!("found at {:?}, after {expiry:?}", answer.now)
        })?;
        version = Some(stored.revision);
        pause(until, "the expiry of a value").await?;
    }
    // Gone for every way of asking, and before anybody has swept.
    same("a scan", keys(&store, "e/", 10).await?, vec!["e/long".to_owned()])?;
    if let Some(version) = version {
        let condition = Condition::Version(key("e/short")?, version);
        same(
            "its version",
            write(&store, vec![condition], vec![put("x", "x")?]).await?,
            None,
        )?;
    }
    let condition = Condition::Missing(key("e/short")?);
    let written = write(&store, vec![condition], vec![put("e/short", "y")?]).await?;
    check(written.is_some(), || {
        "Missing does not hold for an expired value".to_owned()
    })?;
    // A value without retention takes the expiry of the one before away.
    let kept = read(&store, "e/short")
        .await?
        .ok_or("a value that was written is missing")?;
    same("the expiry of a value without", kept.expiry, None)
}

pub(super) async fn time_never_goes_back(bench: &Bench<'_>) -> Verdict {
    let store = bench.open().await?;
    let mut last = StoreTime::default();
    for round in 0..20 {
        let change = super::kit::batch(vec![], vec![put("a", round.to_string())?])?;
        let written = store.write(&change).await.map_err(failed("a write"))?;
        let crate::location::Written::Applied { now, .. } = written else {
            return Err("a batch without conditions is in conflict".to_owned());
        };
        let read = store.read(&key("a")?).await.map_err(failed("a read"))?.now;
        let scanned = super::kit::page(&store, &super::kit::scan("", 1)?).await?.now;
        check(last <= now && now <= read && read <= scanned, || {
            format!("{last:?}, then {now:?}, {read:?}, {scanned:?}")
        })?;
        last = scanned;
    }
    Ok(())
}
