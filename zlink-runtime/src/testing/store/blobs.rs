//! Cases about blobs.

use std::time::Duration;

use bytes::Bytes;

use super::kit::{check, deadline, failed, pause, same};
use super::{Bench, Verdict};
use crate::limit::{BLOB_BYTES, BLOB_REFERENCE_BYTES};
use crate::location::{BlobPut, BlobRef, BlobRenewed, StoreError};

const HOUR: Duration = Duration::from_secs(3600);

fn name(text: &str) -> Result<BlobRef, String> {
    BlobRef::new(text).map_err(failed("making a reference"))
}

pub(super) async fn blobs_are_written_once(bench: &Bench<'_>) -> Verdict {
    let Some(store) = bench.blobs().await? else {
        return Ok(());
    };
    let Some(other) = bench.blobs().await? else {
        return Ok(());
    };
    let longest = name(&"\u{e4}".repeat(BLOB_REFERENCE_BYTES / 2))?;
    for reference in [name("a")?, name("a\0")?, longest] {
        let missing = store.get(&reference).await.map_err(failed("a get"))?;
        same("a blob that was never put", missing, None)?;
        let bytes = Bytes::from(b"first".to_vec());
        let put = store
            .put(&reference, bytes.clone(), HOUR)
            .await
            .map_err(failed("a put"))?;
        let BlobPut::Stored { expiry } = put else {
            return Err(format!("the first put gives {put:?}"));
        };
        let again = other
            .put(&reference, bytes.clone(), HOUR / 2)
            .await
            .map_err(failed("the same put"))?;
        same(
            "the same put, for a shorter time",
            again,
            BlobPut::AlreadyStored { expiry },
        )?;
        let clash = other
            .put(&reference, Bytes::from_static(b"other"), HOUR)
            .await
            .map_err(failed("a put"))?;
        same("a put of other bytes", clash, BlobPut::Conflict)?;
        let found = other
            .get(&reference)
            .await
            .map_err(failed("a get"))?
            .ok_or("a blob is missing")?;
        same("the bytes", found.bytes, bytes)?;
        same("the expiry", found.expiry, expiry)?;
        for _ in 0..2 {
            store.delete(&reference).await.map_err(failed("a delete"))?;
        }
        let gone = store.get(&reference).await.map_err(failed("a get"))?;
        same("a deleted blob", gone, None)?;
    }
    Ok(())
}

pub(super) async fn blobs_expire_unless_renewed(bench: &Bench<'_>) -> Verdict {
    let Some(store) = bench.blobs().await? else {
        return Ok(());
    };
    let (short, kept) = (name("short")?, name("kept")?);
    for reference in [&short, &kept] {
        let put = store
            .put(reference, Bytes::from_static(b"x"), Duration::from_millis(300))
            .await;
        check(matches!(put, Ok(BlobPut::Stored { .. })), || {
            format!("a put gives {put:?}")
        })?;
    }
    let renewed = store.renew(&kept, HOUR).await.map_err(failed("a renewal"))?;
    let BlobRenewed::Renewed { expiry } = renewed else {
        return Err("a blob has expired early".to_owned());
    };
    let shorter = store
        .renew(&kept, Duration::from_millis(1))
        .await
        .map_err(failed("a renewal"))?;
    same("a renewal for a shorter time", shorter, BlobRenewed::Renewed { expiry })?;
    let until = deadline();
    while store.get(&short).await.map_err(failed("a get"))?.is_some() {
        pause(until, "the expiry of a blob").await?;
    }
    let late = store.renew(&short, HOUR).await.map_err(failed("a renewal"))?;
    same("the renewal of an expired blob", late, BlobRenewed::Missing)?;
    let found = store.get(&kept).await.map_err(failed("a get"))?;
    check(found.is_some(), || "a renewed blob is missing".to_owned())
}

pub(super) async fn blobs_are_bounded(bench: &Bench<'_>) -> Verdict {
    let Some(store) = bench.blobs().await? else {
        return Ok(());
    };
    let reference = name("large")?;
    let greatest = Bytes::from(vec![7; BLOB_BYTES + 1]);
    let refused = store.put(&reference, greatest.clone(), HOUR).await;
    check(matches!(refused, Err(StoreError::Argument(_))), || {
        format!("a blob too large gives {refused:?}")
    })?;
    let refused = store.renew(&reference, Duration::ZERO).await;
    check(matches!(refused, Err(StoreError::Argument(_))), || {
        format!("a renewal for no time gives {refused:?}")
    })?;
    let greatest = greatest.slice(1..);
    let put = store.put(&reference, greatest.clone(), HOUR).await;
    check(matches!(put, Ok(BlobPut::Stored { .. })), || {
        format!("the largest blob gives {put:?}")
    })?;
    let found = store
        .get(&reference)
        .await
        .map_err(failed("a get"))?
        .ok_or("the largest blob is missing")?;
    check(found.bytes == greatest, || {
        "the largest blob comes back changed".to_owned()
    })
}
