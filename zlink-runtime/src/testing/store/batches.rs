//! Cases about batches: what decides, what is atomic, how versions are numbered.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use bytes::Bytes;

use super::kit::{Store, apply, batch, check, failed, key, pages, put, read, same, write};
use super::{Bench, Verdict};
use crate::location::{Condition, Key, Mutation, Revision, Stored, Written};

fn version(stored: Option<&Stored>) -> Result<Revision, String> {
    let stored = stored.ok_or("a value that was written is missing")?;
    Ok(stored.revision)
}

pub(super) async fn conditions_decide(bench: &Bench<'_>) -> Verdict {
    let store = bench.open().await?;
    let missing = || Ok::<_, String>(Condition::Missing(key("a")?));
    let first = write(&store, vec![missing()?], vec![put("a", "1")?]).await?;
    let first = first.ok_or("Missing does not hold for a key without a value")?;
    same(
        "Missing on a value",
        write(&store, vec![missing()?], vec![put("a", "2")?]).await?,
        None,
    )?;
    let at = |revision| Ok::<_, String>(Condition::Version(key("a")?, revision));
    let second = write(&store, vec![at(first)?], vec![put("a", "2")?]).await?;
    let second = second.ok_or("the version of the present value does not hold")?;
    same(
        "a version of the past",
        write(&store, vec![at(first)?], vec![put("a", "3")?]).await?,
        None,
    )?;
    // Greater is not equal.
    let later = Revision::new(second.get() + 1).ok_or("no revision is left")?;
    same(
        "a version to come",
        write(&store, vec![at(later)?], vec![put("a", "3")?]).await?,
        None,
    )?;
    let other = Condition::Version(key("b")?, second);
    same(
        "a version of no value",
        write(&store, vec![other], vec![put("a", "3")?]).await?,
        None,
    )?;
    let gone = write(&store, vec![at(second)?], vec![Mutation::Delete(key("a")?)]).await?;
    check(gone.is_some(), || {
        "the version of the present value does not hold".to_owned()
    })?;
    let again = write(&store, vec![missing()?], vec![Mutation::Delete(key("a")?)]).await?;
    check(again.is_some(), || "Missing does not hold for a deleted key".to_owned())
}

pub(super) async fn a_conflict_changes_nothing(bench: &Bench<'_>) -> Verdict {
    let store = bench.open().await?;
    let before = apply(&store, vec![put("a", "1")?, put("b", "1")?]).await?;
    // One condition of many fails, and it is not the first.
    let conditions = vec![
        Condition::Version(key("a")?, before),
        Condition::Missing(key("c")?),
        Condition::Missing(key("b")?),
    ];
    let mutations = vec![put("a", "2")?, Mutation::Delete(key("b")?), put("c", "2")?];
    same(
        "a batch with one wrong condition",
        write(&store, conditions, mutations).await?,
        None,
    )?;
    for (name, wanted) in [("a", Some("1")), ("b", Some("1")), ("c", None)] {
        let found = read(&store, name).await?;
        same(
            name,
            found.as_ref().map(|stored| &*stored.value),
            wanted.map(str::as_bytes),
        )?;
        same(name, found.map(|stored| stored.revision), wanted.map(|_| before))?;
    }
    Ok(())
}

pub(super) async fn revisions_increase_and_are_one_per_batch(bench: &Bench<'_>) -> Verdict {
    let (one, other) = (bench.open().await?, bench.open().await?);
    let mut last = None;
    for round in 0..20 {
        let store = if round % 2 == 0 { &one } else { &other };
        let names = [format!("a{round}"), "b".to_owned(), format!("c{}", round % 3)];
        let mutations = names.iter().map(|name| put(name, "x")).collect::<Result<_, _>>()?;
        let revision = apply(store, mutations).await?;
        check(Some(revision) > last, || format!("{revision} came after {last:?}"))?;
        last = Some(revision);
        for name in names {
            same(
                "the version of a value",
                version(read(store, &name).await?.as_ref())?,
                revision,
            )?;
        }
    }
    // A batch that only deletes, even nothing, has one, too.
    let deleted = apply(&one, vec![Mutation::Delete(key("none")?)]).await?;
    check(Some(deleted) > last, || format!("{deleted} came after {last:?}"))
}

pub(super) async fn versions_never_recur(bench: &Bench<'_>) -> Verdict {
    let store = bench.open().await?;
    let mut seen = Vec::new();
    for _ in 0..3 {
        let revision = apply(&store, vec![put("a", "same")?]).await?;
        apply(&store, vec![Mutation::Delete(key("a")?)]).await?;
        seen.push(revision);
    }
    apply(&store, vec![put("a", "same")?]).await?;
    for revision in seen {
        let old = Condition::Version(key("a")?, revision);
        same(
            "a version from before a delete",
            write(&store, vec![old], vec![put("a", "x")?]).await?,
            None,
        )?;
    }
    Ok(())
}

const TWINS: [&str; 4] = ["t/a", "t/b", "t/c", "t/d"];

/// Writes the same number under every twin, `rounds` times.
async fn write_twins(store: &Store, rounds: u32) -> Verdict {
    for round in 0..rounds {
        let value = Bytes::from(round.to_string());
        let mutations = TWINS
            .iter()
            .map(|name| put(name, value.clone()))
            .collect::<Result<_, _>>()?;
        apply(store, mutations).await?;
        tokio::task::yield_now().await;
    }
    Ok(())
}

pub(super) async fn readers_see_whole_batches(bench: &Bench<'_>) -> Verdict {
    let (writer, reader) = (bench.open().await?, bench.open().await?);
    write_twins(&writer, 1).await?;
    let twins: Vec<Key> = TWINS.iter().map(key).collect::<Result<_, _>>()?;
    let mut writing = pin!(write_twins(&writer, 200));
    loop {
        let mut reading = pin!(reader.read_many(&twins));
        let mut ended = None;
        let found = poll_fn(|context| {
            if let Poll::Ready(verdict) = writing.as_mut().poll(context) {
                ended = Some(verdict);
                return Poll::Ready(None);
            }
            reading.as_mut().poll(context).map(Some)
        })
        .await;
        let Some(found) = found else {
            return ended.unwrap_or(Ok(()));
        };
        let found = found.map_err(failed("a read"))?.found;
        let first = version(found.first().and_then(Option::as_ref))?;
        for stored in &found {
            same("versions in one observation", version(stored.as_ref())?, first)?;
        }
    }
}

/// Adds one to a number under `name`, by condition on its version, until it is not in conflict.
async fn count_up(store: &Store, name: &str) -> Verdict {
    for _ in 0..10_000 {
        let (number, condition) = match read(store, name).await? {
            None => (0, Condition::Missing(key(name)?)),
            Some(stored) => {
                let text = String::from_utf8(stored.value.to_vec()).map_err(failed("reading a number"))?;
                let number: u64 = text.parse().map_err(failed("reading a number"))?;
                (number, Condition::Version(key(name)?, stored.revision))
            }
        };
        if write(store, vec![condition], vec![put(name, (number + 1).to_string())?])
            .await?
            .is_some()
        {
            return Ok(());
        }
        tokio::task::yield_now().await;
    }
    Err("a batch was in conflict 10,000 times".to_owned())
}

pub(super) async fn no_update_is_lost(bench: &Bench<'_>) -> Verdict {
    const RACERS: usize = 8;
    const ROUNDS: usize = 25;
    let mut racers = tokio::task::JoinSet::new();
    for _ in 0..RACERS {
        let store = bench.open().await?;
        racers.spawn(async move {
            for _ in 0..ROUNDS {
                count_up(&store, "n").await?;
            }
            Ok::<_, String>(())
        });
    }
    while let Some(ended) = racers.join_next().await {
        ended.map_err(failed("a racer"))??;
    }
    let found = read(&bench.open().await?, "n").await?.ok_or("the number is gone")?;
    same("the sum", found.value, Bytes::from((RACERS * ROUNDS).to_string()))
}

pub(super) async fn a_dropped_future_leaves_all_or_nothing(bench: &Bench<'_>) -> Verdict {
    let store = bench.open().await?;
    let twins: Vec<Key> = TWINS.iter().map(key).collect::<Result<_, _>>()?;
    for polls in 0..6 {
        let before = apply(
            &store,
            TWINS.iter().map(|name| put(name, "0")).collect::<Result<_, _>>()?,
        )
        .await?;
        let change = batch(
            vec![Condition::Version(key(TWINS[0])?, before)],
            TWINS
                .iter()
                .map(|name| put(name, format!("{polls}")))
                .collect::<Result<_, _>>()?,
        )?;
        {
            let mut dropped = store.write(&change);
            let mut left = polls;
            poll_fn(|context| {
                if left == 0 || dropped.as_mut().poll(context).is_ready() {
                    return Poll::Ready(());
                }
                left -= 1;
                context.waker().wake_by_ref();
                Poll::Pending
            })
            .await;
        }
        // The dropped one may still come; after this one it is in conflict at the latest.
        let repeated = store.write(&change).await.map_err(failed("the same batch again"))?;
        let found = store.read_many(&twins).await.map_err(failed("a read"))?.found;
        let first = version(found.first().and_then(Option::as_ref))?;
        for stored in found.iter().map(Option::as_ref) {
            same("versions in one observation", version(stored)?, first)?;
        }
        match repeated {
            Written::Applied { revision, .. } => same("the repeated batch", first, revision)?,
            Written::Conflict if polls == 0 => return Err("a future that was never polled did something".to_owned()),
            Written::Conflict => check(first > before, || "in conflict, and yet not applied".to_owned())?,
        }
    }
    // Nothing comes late that could not have been applied before.
    let pages = pages(&store, "t/", 10).await?;
    same(
        "the entries left",
        pages.iter().map(|page| page.entries.len()).sum(),
        TWINS.len(),
    )
}
