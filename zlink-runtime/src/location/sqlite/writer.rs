//! The thread that writes: batches that wait together share a transaction, and each has a revision of its own.

use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension, Row};

use super::Clock;
use super::file::{File, unavailable};
use super::thread::{Jobs, Ticket};
use crate::location::{Batch, Condition, Key, Mutation, Revision, StoreError, StoreTime, Written};

/// No batch joins a transaction that is older.
const TRANSACTION: Duration = Duration::from_millis(5);
/// Batches of one transaction.
const JOINED: usize = 256;
/// Expired records that one transaction sweeps out.
const SWEEP: i64 = 64;
/// Batches, and bytes written, after which the log is copied into the file.
const CHECKPOINT_BATCHES: usize = 512;
const CHECKPOINT_BYTES: usize = 4 << 20;

/// A batch, and who waits for it.
pub(super) struct WriteJob {
    pub(super) ticket: Ticket<Written>,
    pub(super) batch: Batch,
}

pub(super) fn run(file: &File, mut jobs: Jobs<WriteJob>, clock: &Clock) {
    let (mut batches, mut bytes) = (0, 0);
    while let Some(first) = jobs.wait() {
        let Some(first) = begin(file, first) else { continue };
        let mut group = Group::new(file, clock);
        group.add(first);
        while group.takes_more() {
            let Some(job) = jobs.next() else { break };
            if !job.ticket.is_gone() {
                group.add(job);
            }
        }
        let (is_full, written) = (!group.takes_more(), group.bytes);
        batches += group.end();
        bytes += written;
        if batches >= CHECKPOINT_BATCHES || bytes >= CHECKPOINT_BYTES {
            file.checkpoint();
            (batches, bytes) = (0, 0);
        }
        if is_full {
            // More waits here; let other processes have their turn between.
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

/// Begins a transaction for `job`; `None` where that is over without one.
fn begin(file: &File, job: WriteJob) -> Option<WriteJob> {
    let mut wait = Duration::from_micros(50);
    loop {
        if job.ticket.is_gone() {
            return None;
        }
        match file.begin() {
            Ok(true) => return Some(job),
            Ok(false) if job.ticket.is_late() => {
                job.ticket.too_late();
                return None;
            }
            Ok(false) => {
                std::thread::sleep(wait);
                wait = (wait * 2).min(Duration::from_millis(1));
            }
            Err(error) => {
                job.ticket.answer(Err(error));
                return None;
            }
        }
    }
}

/// What shares a transaction that has begun.
struct Group<'a> {
    file: &'a File,
    clock: &'a Clock,
    began: Instant,
    /// The last revision in the file, as this transaction sees it.
    last: Result<u64, StoreError>,
    changed: bool,
    bytes: usize,
    answers: Vec<(Ticket<Written>, Result<Written, StoreError>)>,
}

impl<'a> Group<'a> {
    fn new(file: &'a File, clock: &'a Clock) -> Self {
        Self {
            file,
            clock,
            began: Instant::now(),
            last: last_revision(&file.connection).map_err(|error| unavailable(&error)),
            changed: false,
            bytes: 0,
            answers: Vec::new(),
        }
    }

    fn takes_more(&self) -> bool {
        self.last.is_ok() && self.answers.len() < JOINED && self.began.elapsed() < TRANSACTION
    }

    fn add(&mut self, job: WriteJob) {
        let answer = self.apply(&job.batch);
        self.answers.push((job.ticket, answer));
    }

    fn apply(&mut self, batch: &Batch) -> Result<Written, StoreError> {
        let last = self.last.clone()?;
        let now = self.clock.now();
        let connection = &self.file.connection;
        let done = holds(connection, batch, now).and_then(|holds| {
            let revision = match (holds, Revision::new(last + 1)) {
                (false, _) => return Ok(Ok(Written::Conflict)),
                (true, None) => return Ok(Err(StoreError::Exhausted)),
                (true, Some(revision)) => revision,
            };
            mutate(connection, batch, revision, now)?;
            Ok(Ok(Written::Applied { revision, now }))
        });
        match done {
            Ok(Ok(Written::Applied { revision, now })) => {
                self.last = Ok(revision.get());
                self.changed = true;
                self.bytes += batch.bytes();
                Ok(Written::Applied { revision, now })
            }
            Ok(other) => other,
            Err(error) => {
                // It may have been done by half: none of the transaction counts.
                let error = unavailable(&error);
                self.last = Err(error.clone());
                Err(error)
            }
        }
    }

    /// Ends the transaction and answers everybody; the number of batches that were in it.
    fn end(self) -> usize {
        let count = self.answers.len();
        let failure = match &self.last {
            Err(error) => Some(error.clone()),
            Ok(_) if !self.changed => None,
            Ok(last) => {
                let now = self.clock.now();
                let sealed = seal(&self.file.connection, *last, now);
                match sealed.map(|()| self.file.connection.execute_batch("COMMIT")) {
                    Err(error) => Some(unavailable(&error)),
                    Ok(Ok(())) => None,
                    // It may have come so far that another process sees it.
                    Ok(Err(error)) => Some(StoreError::Unknown(error.to_string())),
                }
            }
        };
        self.file.roll_back();
        for (ticket, answer) in self.answers {
            ticket.answer(match (answer, &failure) {
                (Ok(Written::Applied { .. } | Written::Conflict), Some(failure)) => Err(failure.clone()),
                (answer, _) => answer,
            });
        }
        count
    }
}

fn last_revision(connection: &Connection) -> rusqlite::Result<u64> {
    let mut select = connection.prepare_cached("SELECT revision FROM state")?;
    select.query_row((), |row| unsigned(row, 0))
}

fn holds(connection: &Connection, batch: &Batch, now: StoreTime) -> rusqlite::Result<bool> {
    for condition in batch.conditions() {
        let found = version(connection, condition.key(), now)?;
        let holds = match condition {
            Condition::Missing(_) => found.is_none(),
            Condition::Version(_, revision) => found == Some(revision.get()),
        };
        if !holds {
            return Ok(false);
        }
    }
    Ok(true)
}

fn version(connection: &Connection, key: &Key, now: StoreTime) -> rusqlite::Result<Option<u64>> {
    let text = "SELECT revision FROM records WHERE key = ?1 AND (expiry IS NULL OR expiry > ?2)";
    let mut select = connection.prepare_cached(text)?;
    let found = select.query_row((key.as_str().as_bytes(), signed(now.as_millis())), |row| {
        unsigned(row, 0)
    });
    found.optional()
}

fn mutate(connection: &Connection, batch: &Batch, revision: Revision, now: StoreTime) -> rusqlite::Result<()> {
    let mut put = connection.prepare_cached("INSERT OR REPLACE INTO records VALUES (?1, ?2, ?3, ?4)")?;
    let mut delete = connection.prepare_cached("DELETE FROM records WHERE key = ?1")?;
    for mutation in batch.mutations() {
        let key = mutation.key().as_str().as_bytes();
        match mutation {
            Mutation::Put { value, retention, .. } => {
                let expiry = retention.map(|span| signed(now.after(span).as_millis()));
                put.execute((key, &**value, signed(revision.get()), expiry))?;
            }
            Mutation::Delete(_) => {
                delete.execute((key,))?;
            }
        }
    }
    Ok(())
}

/// What comes last in every transaction: the revision it has reached, and a few expired records less.
fn seal(connection: &Connection, last: u64, now: StoreTime) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE state SET revision = ?1")?
        .execute((signed(last),))?;
    let text = "DELETE FROM records WHERE key IN (SELECT key FROM records WHERE expiry <= ?1 LIMIT ?2)";
    connection
        .prepare_cached(text)?
        .execute((signed(now.as_millis()), SWEEP))?;
    Ok(())
}

/// As SQLite keeps it: 63 bits, which no revision exceeds, nor any clock that is right.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(row: &Row<'_>, at: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(at)?;
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(at, number))
}
