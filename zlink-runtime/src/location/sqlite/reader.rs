//! The thread that reads, and what reads and scans are made of. Each is one transaction.

use std::time::Duration;

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Row};

use super::Clock;
use super::file::{File, is_busy, unavailable};
use super::thread::{Jobs, Ticket};
use super::writer::{signed, unsigned};
use crate::limit::PAGE_BYTES;
use crate::location::{Cursor, Key, Page, ReadMany, Revision, Scan, Scanned, StoreError, StoreTime, Stored};

/// What the thread does with a file at a moment.
pub(super) type Job = Box<dyn FnOnce(&File, &Clock) + Send>;

/// Why a read has no answer.
pub(super) enum Failed {
    Sqlite(rusqlite::Error),
    Store(StoreError),
}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Self {
        Failed::Sqlite(error)
    }
}

/// How long a read waits while somebody recovers the log after a crash; nothing else holds it up.
const RECOVERY: Duration = Duration::from_secs(1);

pub(super) fn run(file: &File, mut jobs: Jobs<Job>, clock: &Clock) {
    // Refused only for a closed connection.
    let _ = file.connection.busy_timeout(RECOVERY);
    while let Some(job) = jobs.wait() {
        job(file, clock);
    }
}

/// `act` in a transaction of its own, for whoever holds the ticket.
pub(super) fn job<T: Send + 'static>(
    ticket: Ticket<T>,
    act: impl FnOnce(&File, StoreTime) -> Result<T, Failed> + Send + 'static,
) -> Job {
    Box::new(move |file, clock| {
        if ticket.is_gone() {
            return;
        }
        if ticket.is_late() {
            return ticket.too_late();
        }
        let answer = file.check_in_place().and_then(|()| {
            let now = clock.now();
            let began = file.connection.execute_batch("BEGIN").map_err(Failed::Sqlite);
            let answer = began.and_then(|()| act(file, now));
            file.roll_back();
            answer.map_err(|failed| match failed {
                Failed::Store(error) => error,
                Failed::Sqlite(error) if is_busy(&error) => StoreError::DeadlineExceeded(error.to_string()),
                Failed::Sqlite(error) => unavailable(&error),
            })
        });
        ticket.answer(answer);
    })
}

pub(super) fn read_many(file: &File, keys: &[Key], now: StoreTime) -> Result<ReadMany, Failed> {
    let text = "SELECT value, revision, expiry FROM records WHERE key = ?1 AND (expiry IS NULL OR expiry > ?2)";
    let mut select = file.connection.prepare_cached(text)?;
    let mut found = Vec::with_capacity(keys.len());
    for key in keys {
        let row = select.query_row((key.as_str().as_bytes(), signed(now.as_millis())), |row| stored(row, 0));
        found.push(row.optional()?);
    }
    Ok(ReadMany { now, found })
}

pub(super) fn scan(file: &File, scan: &Scan, now: StoreTime) -> Result<Scanned, Failed> {
    let text = "SELECT key, value, revision, expiry FROM records
                WHERE key >= ?1 AND (expiry IS NULL OR expiry > ?2) ORDER BY key";
    let mut select = file.connection.prepare_cached(text)?;
    let after = scan.cursor().map(Cursor::as_bytes);
    let from = after.unwrap_or(scan.prefix().as_bytes());
    let mut rows = select.query((from, signed(now.as_millis())))?;
    let mut entries: Vec<(Key, Stored)> = Vec::new();
    let mut bytes = 0;
    let mut more = false;
    while let Some(row) = rows.next()? {
        let key = row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?;
        if !key.starts_with(scan.prefix().as_bytes()) {
            break;
        }
        if Some(key) == after {
            continue;
        }
        let value = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
        bytes += key.len() + value.len();
        // One record always fits: it is a quarter of a page at most.
        if entries.len() == scan.limit() || bytes > PAGE_BYTES {
            more = true;
            break;
        }
        let key = std::str::from_utf8(key).ok().and_then(|key| Key::new(key).ok());
        let key = key.ok_or_else(|| Failed::Store(StoreError::Unavailable("a key in the file is none".to_owned())))?;
        entries.push((key, stored(row, 1)?));
    }
    let next = match entries.last().filter(|_| more) {
        None => None,
        Some((key, _)) => Some(Cursor::new(key.as_str().to_owned()).map_err(|error| Failed::Store(error.into()))?),
    };
    let revision = last_revision(&file.connection)?;
    Ok(Scanned::Page(Page {
        entries,
        next,
        revision,
        now,
    }))
}

fn last_revision(connection: &Connection) -> rusqlite::Result<Option<Revision>> {
    let mut select = connection.prepare_cached("SELECT revision FROM state")?;
    select.query_row((), |row| Ok(Revision::new(unsigned(row, 0)?)))
}

/// The value in the three columns from `at` on.
fn stored(row: &Row<'_>, at: usize) -> rusqlite::Result<Stored> {
    let number = unsigned(row, at + 1)?;
    let out_of_range = || rusqlite::Error::IntegralValueOutOfRange(at + 1, signed(number));
    let expiry: Option<i64> = row.get(at + 2)?;
    Ok(Stored {
        value: Bytes::copy_from_slice(row.get_ref(at)?.as_blob()?),
        revision: Revision::new(number).ok_or_else(out_of_range)?,
        expiry: expiry.map(|millis| StoreTime::from_millis(u64::try_from(millis).unwrap_or(0))),
    })
}
