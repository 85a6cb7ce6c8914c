//! Cases about bounds: the greatest of everything is taken, more is refused, and the probe of a host.

use bytes::Bytes;

use super::kit::{apply, check, failed, key, keys, put, read, same, write};
use super::{Bench, Verdict};
use crate::limit::{BATCH_BYTES, BATCH_KEYS, READ_KEYS, STORE_KEY_BYTES, STORE_VALUE_BYTES};
use crate::location::{Condition, Key, StoreError, probe};

pub(super) async fn the_greatest_of_everything_is_taken(bench: &Bench<'_>) -> Verdict {
    let store = bench.open().await?;
    let name = "\u{e4}".repeat(STORE_KEY_BYTES / 2);
    apply(&store, vec![put(&name, "x")?]).await?;
    check(read(&store, &name).await?.is_some(), || {
        "the longest key is not found".to_owned()
    })?;
    same(
        "a scan by the longest prefix",
        keys(&store, &name, 1).await?,
        vec![name],
    )?;
    let names: Vec<String> = (0..BATCH_KEYS).map(|at| format!("many/{at:04}")).collect();
    let conditions = names
        .iter()
        .map(|name| Ok(Condition::Missing(key(name)?)))
        .collect::<Result<_, String>>()?;
    let mutations = names.iter().map(|name| put(name, "x")).collect::<Result<_, _>>()?;
    let written = write(&store, conditions, mutations).await?;
    check(written.is_some(), || {
        format!("a batch of {BATCH_KEYS} keys is in conflict")
    })?;
    same("their scan", keys(&store, "many/", 1000).await?, names.clone())?;
    let some: Vec<Key> = names.iter().take(READ_KEYS).map(key).collect::<Result<_, _>>()?;
    let found = store.read_many(&some).await.map_err(failed("the longest read"))?.found;
    same("their read", found.iter().flatten().count(), READ_KEYS)?;
    let large = Bytes::from(vec![1; STORE_VALUE_BYTES]);
    let rest = large.slice(..BATCH_BYTES - 3 * STORE_VALUE_BYTES - 4);
    let mutations = vec![
        put("1", large.clone())?,
        put("2", large.clone())?,
        put("3", large)?,
        put("4", rest.clone())?,
    ];
    apply(&store, mutations).await?;
    let found = read(&store, "4").await?.map(|stored| stored.value.len());
    same("a batch of 4 MiB", found, Some(rest.len()))
}

pub(super) async fn too_many_keys_are_refused(bench: &Bench<'_>) -> Verdict {
    let store = bench.open().await?;
    let many = vec![key("a")?; READ_KEYS + 1];
    let answer = store.read_many(&many).await;
    check(matches!(answer, Err(StoreError::Argument(_))), || {
        format!("1,001 keys give {answer:?}")
    })
}

pub(super) async fn the_probe_passes_and_leaves_nothing(bench: &Bench<'_>) -> Verdict {
    let store = bench.open().await?;
    apply(&store, vec![put("before", "x")?]).await?;
    for _ in 0..2 {
        probe(&*store).await.map_err(|problem| problem.to_string())?;
    }
    same(
        "the keys afterwards",
        keys(&store, "", 10).await?,
        vec!["before".to_owned()],
    )
}
