//! The thread of a blob file: one operation after the other, each a transaction.

use std::time::Duration;

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension};

use super::Clock;
use super::file::{File, unavailable};
use super::thread::{Jobs, Ticket};
use super::writer::{signed, unsigned};
use crate::location::{BlobPut, BlobRef, BlobRenewed, StoreError, StoreTime, StoredBlob};

/// Expired blobs that one put sweeps out.
const SWEEP: i64 = 4;

pub(super) enum BlobJob {
    Put(Ticket<BlobPut>, BlobRef, Bytes, Duration),
    Get(Ticket<Option<StoredBlob>>, BlobRef),
    Renew(Ticket<BlobRenewed>, BlobRef, Duration),
    Delete(Ticket<()>, BlobRef),
}

pub(super) fn run(file: &File, mut jobs: Jobs<BlobJob>, clock: &Clock) {
    while let Some(job) = jobs.wait() {
        match job {
            BlobJob::Put(ticket, reference, bytes, retention) => change(file, ticket, |connection| {
                put(connection, &reference, &bytes, clock.now(), retention)
            }),
            BlobJob::Renew(ticket, reference, retention) => change(file, ticket, |connection| {
                let renewed = renew(connection, &reference, clock.now(), retention)?;
                Ok(renewed.map_or(BlobRenewed::Missing, |expiry| BlobRenewed::Renewed { expiry }))
            }),
            BlobJob::Delete(ticket, reference) => change(file, ticket, |connection| {
                let name = reference.as_str().as_bytes();
                connection
                    .prepare_cached("DELETE FROM blobs WHERE reference = ?1")?
                    .execute((name,))?;
                Ok(())
            }),
            BlobJob::Get(ticket, reference) => {
                if ticket.is_gone() {
                    continue;
                }
                if ticket.is_late() {
                    ticket.too_late();
                    continue;
                }
                let read = || get(&file.connection, &reference, clock.now()).map_err(|error| unavailable(&error));
                let answer = file.check_in_place().and_then(|()| read());
                ticket.answer(answer);
                continue;
            }
        }
        file.checkpoint();
    }
}

/// Does `act` in a transaction that writes.
fn change<T>(file: &File, ticket: Ticket<T>, act: impl FnOnce(&Connection) -> rusqlite::Result<T>) {
    loop {
        if ticket.is_gone() {
            return;
        }
        if ticket.is_late() {
            return ticket.too_late();
        }
        match file.begin() {
            Ok(true) => break,
            Ok(false) => std::thread::sleep(Duration::from_millis(1)),
            Err(error) => return ticket.answer(Err(error)),
        }
    }
    let answer = match act(&file.connection) {
        Err(error) => Err(unavailable(&error)),
        Ok(done) => match file.connection.execute_batch("COMMIT") {
            Ok(()) => Ok(done),
            Err(error) => Err(StoreError::Unknown(error.to_string())),
        },
    };
    file.roll_back();
    ticket.answer(answer);
}

fn put(
    connection: &Connection,
    reference: &BlobRef,
    bytes: &Bytes,
    now: StoreTime,
    retention: Duration,
) -> rusqlite::Result<BlobPut> {
    let text = "DELETE FROM blobs WHERE rowid IN (SELECT rowid FROM blobs WHERE expiry <= ?1 LIMIT ?2)";
    connection
        .prepare_cached(text)?
        .execute((signed(now.as_millis()), SWEEP))?;
    let name = reference.as_str().as_bytes();
    let text = "SELECT bytes = ?3 FROM blobs WHERE reference = ?1 AND expiry > ?2";
    let mut select = connection.prepare_cached(text)?;
    let found = select.query_row((name, signed(now.as_millis()), &**bytes), |row| row.get::<_, bool>(0));
    match found.optional()? {
        Some(false) => return Ok(BlobPut::Conflict),
        Some(true) => {
            if let Some(expiry) = renew(connection, reference, now, retention)? {
                return Ok(BlobPut::AlreadyStored { expiry });
            }
        }
        None => {}
    }
    let expiry = now.after(retention);
    let mut insert = connection.prepare_cached("INSERT OR REPLACE INTO blobs VALUES (?1, ?2, ?3)")?;
    insert.execute((name, &**bytes, signed(expiry.as_millis())))?;
    Ok(BlobPut::Stored { expiry })
}

fn get(connection: &Connection, reference: &BlobRef, now: StoreTime) -> rusqlite::Result<Option<StoredBlob>> {
    let text = "SELECT bytes, expiry FROM blobs WHERE reference = ?1 AND expiry > ?2";
    let mut select = connection.prepare_cached(text)?;
    let found = select.query_row((reference.as_str().as_bytes(), signed(now.as_millis())), |row| {
        Ok(StoredBlob {
            bytes: Bytes::copy_from_slice(row.get_ref(0)?.as_blob()?),
            expiry: StoreTime::from_millis(unsigned(row, 1)?),
        })
    });
    found.optional()
}

/// The later of both expiries; `None` where there is no such blob.
fn renew(
    connection: &Connection,
    reference: &BlobRef,
    now: StoreTime,
    retention: Duration,
) -> rusqlite::Result<Option<StoreTime>> {
    let text = "UPDATE blobs SET expiry = max(expiry, ?3) WHERE reference = ?1 AND expiry > ?2 RETURNING expiry";
    let mut update = connection.prepare_cached(text)?;
    let expiry = signed(now.after(retention).as_millis());
    let row = (reference.as_str().as_bytes(), signed(now.as_millis()), expiry);
    let renewed = update.query_row(row, |row| unsigned(row, 0)).optional()?;
    Ok(renewed.map(StoreTime::from_millis))
}

#[cfg(test)]
mod tests {
    use super::super::file::Kind;
    use super::super::thread;
    use super::*;

    /// REQ: LS-065
    #[tokio::test]
    async fn what_could_not_be_begun_in_time_is_not_done() {
        let folder = tempfile::TempDir::new().unwrap();
        let work = |file: File, jobs| run(&file, jobs, &Clock::default());
        let file = folder.path().join("blobs");
        let queue = thread::spawn("blobs", &file, Kind::Blobs, work);
        let queue = queue.await.unwrap();
        let name = || BlobRef::new("x").unwrap();
        let (late, soon) = (Duration::ZERO, Duration::from_secs(60));

        let put = queue.ask(late, |ticket| BlobJob::Put(ticket, name(), "1".into(), soon));
        assert!(matches!(put.await, Some(Err(StoreError::DeadlineExceeded(_)))));
        let get = queue.ask(soon, |ticket| BlobJob::Get(ticket, name())).await;
        assert_eq!(get, Some(Ok(None)));
        let get = queue.ask(late, |ticket| BlobJob::Get(ticket, name())).await;
        assert!(matches!(get, Some(Err(StoreError::DeadlineExceeded(_)))));
    }
}
