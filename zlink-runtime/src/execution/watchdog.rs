//! A thread that looks from outside whether a worker is stuck in a handler which blocks its thread, and says which it is.
//! It changes nothing: what blocks goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};

use super::worker::Beat;

/// The watchdog of one host. Dropping it ends its thread.
#[derive(Debug)]
pub(super) struct Watchdog {
    ended: Arc<AtomicBool>,
    thread: Thread,
}

impl Watchdog {
    /// Watches `beats`, and warns of every poll that takes longer than `limit`, once.
    ///
    /// # Errors
    /// Where the system gives no thread.
    pub(super) fn spawn(beats: Arc<[Beat]>, limit: Duration) -> std::io::Result<Self> {
        let ended = Arc::new(AtomicBool::new(false));
        let told = ended.clone();
        // Who hears of this host is decided where it starts.
        let subscriber = tracing::dispatcher::get_default(Clone::clone);
        let watching = std::thread::Builder::new()
            .name("zlink-watchdog".into())
            .spawn(move || tracing::dispatcher::with_default(&subscriber, || watch(&beats, limit, &told)))?;
        Ok(Self {
            ended,
            thread: watching.thread().clone(),
        })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// One poll that is under way, as it was first seen.
struct Seen {
    turn: u64,
    since: Instant,
    reported: bool,
}

fn watch(beats: &[Beat], limit: Duration, ended: &AtomicBool) {
    let mut seen: Vec<Option<Seen>> = beats.iter().map(|_| None).collect();
    while !ended.load(Ordering::Acquire) {
        for (beat, seen) in beats.iter().zip(&mut seen) {
            look(beat, seen, limit);
        }
        std::thread::park_timeout(limit / 2);
    }
}

fn look(beat: &Beat, seen: &mut Option<Seen>, limit: Duration) {
    let Some(turn) = beat.turn() else {
        *seen = None;
        return;
    };
    match seen {
        Some(same) if same.turn == turn => {
            let elapsed = same.since.elapsed();
            if same.reported || elapsed < limit {
                return;
            }
            let operation = beat.operation();
            // Had it gone on meanwhile, the name would be another's.
            if beat.turn() == Some(turn) {
                same.reported = true;
                tracing::warn!(
                    target: "zlink::runtime", event_id = "zlink.runtime.host.handler_blocks", operation,
                    elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
                    "a handler blocks its thread; blocking work belongs on a thread of its own, such as spawn_blocking"
                );
            }
        }
        _ => {
            *seen = Some(Seen {
                turn,
                since: Instant::now(),
                reported: false,
            });
        }
    }
}
