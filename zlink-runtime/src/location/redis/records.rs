//! Records as the scripts keep them: what is sent, what comes back, and whether it is still the same namespace.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use redis::{Script, ScriptInvocation};

use super::link::Server;
use crate::limit::PAGE_BYTES;
use crate::location::{
    Batch, Condition, Cursor, Key, Mutation, Page, ReadMany, Revision, Scan, Scanned, StoreError, StoreTime, Stored,
    Written,
};

/// A word, the server's time, the last revision, and the rest.
type Answer = (String, u64, u64, Vec<Option<Bytes>>);

/// What an answer has shown, and the next must not be behind.
#[derive(Clone, Debug, Default)]
struct Seen {
    epoch: String,
    revision: u64,
    now: u64,
}

pub(super) struct Records {
    keys: [String; 5],
    seen: Mutex<Seen>,
    /// How often something was found to be lost.
    losses: AtomicU64,
    scripts: Scripts,
}

struct Scripts {
    open: Script,
    read: Script,
    scan: Script,
    write: Script,
}

impl Records {
    pub(super) fn new(namespace: &str) -> Self {
        let (keys, head) = (include_str!("keys.lua"), include_str!("head.lua"));
        Self {
            // What is in braces decides the slot.
            keys: ["state", "records", "order", "expiry", "batches"]
                .map(|name| format!("{{zlink:{namespace}}}:{name}")),
            seen: Mutex::default(),
            losses: AtomicU64::new(0),
            scripts: Scripts {
                open: Script::new(&[keys, include_str!("open.lua")].join("\n")),
                read: Script::new(&[head, include_str!("read.lua")].join("\n")),
                scan: Script::new(&[head, include_str!("scan.lua")].join("\n")),
                write: Script::new(&[keys, head, include_str!("write.lua")].join("\n")),
            },
        }
    }

    /// Learns which namespace it is, and makes it where there is none.
    pub(super) async fn open(&self, server: &Server) -> Result<(), StoreError> {
        let drawn = uuid::Uuid::new_v4().simple().to_string();
        let mut call = self.scripts.open.prepare_invoke();
        for key in &self.keys {
            call.key(key);
        }
        // A namespace that nobody has used is none that can be lost.
        let (epoch, revision) = server.call(call.arg(drawn), false, Duration::ZERO).await?;
        let mut seen = self.seen.lock();
        seen.epoch = epoch;
        seen.revision = revision;
        Ok(())
    }

    pub(super) async fn read_many(&self, server: &Server, keys: &[Key]) -> Result<ReadMany, StoreError> {
        let mut call = self.prepare(&self.scripts.read);
        for key in keys {
            call.arg(key.as_str());
        }
        let (_, now, _, values) = self.ask(server, &call, false).await?;
        let now = StoreTime::from_millis(now);
        let found = values
            .into_iter()
            .map(|value| value.map_or(Ok(None), |value| stored(value, now)));
        Ok(ReadMany {
            now,
            found: found.collect::<Result<_, _>>()?,
        })
    }

    pub(super) async fn write(&self, server: &Server, batch: &Batch) -> Result<Written, StoreError> {
        let mut call = self.prepare(&self.scripts.write);
        call.arg(batch.conditions().len());
        for condition in batch.conditions() {
            call.arg(condition.key().as_str());
            match condition {
                Condition::Missing(_) => call.arg(""),
                Condition::Version(_, revision) => call.arg(revision.get()),
            };
        }
        for mutation in batch.mutations() {
            match mutation {
                Mutation::Delete(key) => {
                    call.arg("d").arg(key.as_str());
                }
                Mutation::Put { key, value, retention } => {
                    call.arg("p").arg(key.as_str());
                    match retention {
                        None => call.arg(""),
                        Some(retention) => call.arg(StoreTime::default().after(*retention).as_millis()),
                    };
                    call.arg(&**value);
                }
            }
        }
        let (word, now, revision, _) = self.ask(server, &call, true).await?;
        match word.as_str() {
            "conflict" => Ok(Written::Conflict),
            "exhausted" => Err(StoreError::Exhausted),
            _ => Ok(Written::Applied {
                revision: Revision::new(revision).ok_or_else(|| unreadable("a revision of zero"))?,
                now: StoreTime::from_millis(now),
            }),
        }
    }

    pub(super) async fn scan(&self, server: &Server, scan: &Scan) -> Result<Scanned, StoreError> {
        let mut call = self.prepare(&self.scripts.scan);
        let prefix = scan.prefix();
        call.arg(match scan.key_cursor()? {
            Some(key) => format!("({key}"),
            None => format!("[{prefix}"),
        });
        // What begins with the prefix comes before the prefix with its last byte raised; UTF-8 has no byte 255.
        let mut high = prefix.as_bytes().to_vec();
        match high.last_mut() {
            Some(last) => {
                *last += 1;
                high.insert(0, b'(');
            }
            None => high.push(b'+'),
        }
        call.arg(high).arg(scan.limit()).arg(PAGE_BYTES);
        let (_, now, revision, page) = self.ask(server, &call, false).await?;
        let now = StoreTime::from_millis(now);
        let mut page = page.into_iter().map(Option::unwrap_or_default);
        let reached = page.next().unwrap_or_default();
        let next = match reached.is_empty() {
            true => None,
            false => Some(Cursor::new(reached)?),
        };
        let mut entries = Vec::new();
        while let (Some(key), Some(value)) = (page.next(), page.next()) {
            let key = std::str::from_utf8(&key).ok().and_then(|key| Key::new(key).ok());
            let key = key.ok_or_else(|| unreadable("a key that is none"))?;
            if let Some(stored) = stored(value, now)? {
                entries.push((key, stored));
            }
        }
        Ok(Scanned::Page(Page {
            entries,
            next,
            revision: Revision::new(revision),
            now,
        }))
    }

    fn prepare<'a>(&self, script: &'a Script) -> ScriptInvocation<'a> {
        let seen = self.seen.lock().clone();
        let mut call = script.prepare_invoke();
        for key in &self.keys {
            call.key(key);
        }
        call.arg(seen.epoch).arg(seen.revision).arg(seen.now);
        call
    }

    async fn ask(&self, server: &Server, call: &ScriptInvocation<'_>, changes: bool) -> Result<Answer, StoreError> {
        let answer: Answer = server.call(call, changes, Duration::ZERO).await?;
        let (word, now, revision, _) = &answer;
        {
            let mut seen = self.seen.lock();
            seen.now = seen.now.max(*now);
            if word != "lost" {
                seen.revision = seen.revision.max(*revision);
                return Ok(answer);
            }
        }
        // What is there now is what counts from now on; whoever uses it is told.
        self.open(server).await?;
        self.losses.fetch_add(1, Ordering::AcqRel);
        Err(lost())
    }

    pub(super) fn losses(&self) -> u64 {
        self.losses.load(Ordering::Acquire)
    }
}

pub(super) fn lost() -> StoreError {
    let text = "the server began anew without what it had, or is another one that lacks the latest";
    StoreError::Lost(text.to_owned())
}

/// The record in a value of the server; `None` where it has expired.
fn stored(value: Bytes, now: StoreTime) -> Result<Option<Stored>, StoreError> {
    let parts = || {
        let end = |from: usize| Some(from + value.get(from..)?.iter().position(|byte| *byte == b':')?);
        let first = end(0)?;
        let second = end(first + 1)?;
        let number = |range: std::ops::Range<usize>| std::str::from_utf8(value.get(range)?).ok();
        let revision = Revision::new(number(0..first)?.parse().ok()?)?;
        let expiry = match number(first + 1..second)? {
            "" => None,
            millis => Some(StoreTime::from_millis(millis.parse().ok()?)),
        };
        Some((revision, expiry, second + 1))
    };
    let (revision, expiry, begin) = parts().ok_or_else(|| unreadable("a value that nobody here wrote"))?;
    if expiry.is_some_and(|expiry| expiry <= now) {
        return Ok(None);
    }
    Ok(Some(Stored {
        value: value.slice(begin..),
        revision,
        expiry,
    }))
}

fn unreadable(what: &str) -> StoreError {
    StoreError::Unavailable(format!(
        "the server holds {what} in this namespace; use another namespace"
    ))
}
