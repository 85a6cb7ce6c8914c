//! Cases about scans: order, completeness, bounds, one state per page.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use bytes::Bytes;

use super::kit::{apply, check, failed, keys, page, pages, put, same, scan};
use super::{Bench, Verdict};
use crate::limit::{PAGE_BYTES, STORE_VALUE_BYTES};
use crate::location::{Cursor, Mutation, StoreError};

pub(super) async fn pages_are_ordered_and_complete(bench: &Bench<'_>) -> Verdict {
    let store = bench.open().await?;
    let names: Vec<String> = (0..57).map(|at| format!("k/{at:02}")).collect();
    // Written in another order than they are read.
    for name in names.iter().rev() {
        apply(&store, vec![put(name, "x")?]).await?;
    }
    for limit in [1, 7, 57, 1000] {
        let all = pages(&store, "k/", limit).await?;
        check(all.iter().all(|page| page.entries.len() <= limit), || {
            format!("a page has more than {limit}")
        })?;
        same("the keys", keys(&store, "k/", limit).await?, names.clone())?;
    }
    // A cursor stands between keys: it does not mind that its own is gone, and later pages show what came since.
    let first = page(&store, &scan("k/", 10)?).await?;
    let next = first.next.ok_or("a scan of 57 keys ends after 10")?;
    apply(
        &store,
        vec![Mutation::Delete(super::kit::key("k/09")?), put("k/095", "x")?],
    )
    .await?;
    let second = page(&store, &scan("k/", 2)?.after(next)).await?;
    let seen: Vec<_> = second.entries.iter().map(|(key, _)| key.as_str()).collect();
    same("after a change at the cursor", seen, vec!["k/095", "k/10"])
}

pub(super) async fn a_prefix_ends_where_it_ends(bench: &Bench<'_>) -> Verdict {
    let store = bench.open().await?;
    let last = "p\u{10ffff}\u{10ffff}";
    let names = ["o", "p", "p\0", "p/", "p/a", "p/b", "p0", "p\u{7f}", last, "q", "P/a"];
    let mutations = names.iter().map(|name| put(name, "x")).collect::<Result<_, _>>()?;
    apply(&store, mutations).await?;
    for prefix in ["", "p", "p/", "p/a", "p\u{10ffff}", last, "r", "%", "p_"] {
        let mut wanted: Vec<_> = names
            .iter()
            .filter(|name| name.starts_with(prefix))
            .map(|name| (*name).to_owned())
            .collect();
        wanted.sort_unstable();
        same(
            &format!("the keys of {prefix:?}"),
            keys(&store, prefix, 2).await?,
            wanted,
        )?;
    }
    Ok(())
}

pub(super) async fn pages_are_bounded(bench: &Bench<'_>) -> Verdict {
    let store = bench.open().await?;
    let large = Bytes::from(vec![1; STORE_VALUE_BYTES]);
    for at in 0..6 {
        apply(&store, vec![put(&format!("l/{at}"), large.clone())?]).await?;
    }
    let all = pages(&store, "l/", 1000).await?;
    let mut entries = 0;
    for page in &all {
        let bytes: usize = page
            .entries
            .iter()
            .map(|(key, stored)| key.as_str().len() + stored.value.len())
            .sum();
        check(bytes <= PAGE_BYTES, || format!("a page has {bytes} bytes"))?;
        entries += page.entries.len();
    }
    same("the entries", entries, 6)
}

pub(super) async fn a_page_shows_whole_batches(bench: &Bench<'_>) -> Verdict {
    const TWINS: [&str; 3] = ["t/a", "t/m", "t/z"];
    let (writer, reader) = (bench.open().await?, bench.open().await?);
    let twins = || TWINS.iter().map(|name| put(name, "x")).collect::<Result<Vec<_>, _>>();
    let first = apply(&writer, twins()?).await?;
    let request = scan("t/", 10)?;
    let shown = page(&writer, &request).await?;
    check(shown.revision >= Some(first), || {
        format!("{:?} is older than what is shown", shown.revision)
    })?;
    let mut writing = pin!(async {
        for _ in 0..200 {
            apply(&writer, twins()?).await?;
            tokio::task::yield_now().await;
        }
        Ok::<_, String>(())
    });
    let mut last = None;
    loop {
        let mut reading = pin!(page(&reader, &request));
        let mut ended = None;
        let seen = poll_fn(|context| {
            if let Poll::Ready(verdict) = writing.as_mut().poll(context) {
                ended = Some(verdict);
                return Poll::Ready(None);
            }
            reading.as_mut().poll(context).map(Some)
        })
        .await;
        let Some(seen) = seen else {
            return ended.unwrap_or(Ok(()));
        };
        let seen = seen?;
        let versions: Vec<_> = seen.entries.iter().map(|(_, stored)| Some(stored.revision)).collect();
        same("the entries of a page", versions.len(), TWINS.len())?;
        check(versions.iter().all(|version| *version == versions[0]), || {
            format!("versions {versions:?} in one page")
        })?;
        check(seen.revision >= versions[0], || {
            format!("{:?} is older than what it shows", seen.revision)
        })?;
        check(seen.revision >= last, || format!("{:?} after {last:?}", seen.revision))?;
        last = seen.revision;
    }
}

pub(super) async fn a_foreign_cursor_is_refused(bench: &Bench<'_>) -> Verdict {
    let store = bench.open().await?;
    apply(&store, vec![put("a/1", "x")?, put("a/2", "x")?, put("b/1", "x")?]).await?;
    let cursor = page(&store, &scan("a/", 1)?)
        .await?
        .next
        .ok_or("a scan of two keys ends after one")?;
    let bytes = Cursor::new(vec![0xff; 9]).map_err(failed("making a cursor"))?;
    for request in [scan("b/", 1)?.after(cursor), scan("a/", 1)?.after(bytes)] {
        let answer = store.scan(&request).await;
        check(matches!(answer, Err(StoreError::Argument(_))), || {
            format!("a foreign cursor gives {answer:?}")
        })?;
    }
    Ok(())
}
