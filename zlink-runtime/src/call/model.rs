//! Model checks: whatever contends for one entry of the pending table, it has one terminal, and nobody sleeps through it.
//!
//! `scripts/model loom loom_`

use std::sync::Arc;
use std::task::{Poll, Wake, Waker};

use bytes::Bytes;
use loom::sync::{Mutex, Notify};
use loom::thread;

use super::table::{Key, Outcome, Table};
use crate::error::{Error, ErrorKind};
use crate::id::LinkId;

const LINK: LinkId = LinkId(7);

struct Sleep(Notify);

impl Wake for Sleep {
    fn wake(self: Arc<Self>) {
        self.0.notify();
    }
}

/// What may end a request.
#[derive(Clone, Copy)]
enum Contender {
    Reply,
    Deadline,
    Lost,
    Stop,
}

impl Contender {
    /// What its caller is told if this one is first.
    fn outcome(self) -> Outcome {
        let kind = match self {
            Contender::Reply => return Ok(Bytes::from_static(b"reply").into()),
            Contender::Deadline => ErrorKind::DeadlineExceeded,
            Contender::Lost => ErrorKind::Unavailable,
            Contender::Stop => ErrorKind::ShuttingDown,
        };
        Err(Error::unknown(kind, "ended"))
    }

    /// Contends for `key`, and wakes whoever waits for it.
    fn contend(self, table: &Mutex<Table>, key: Key) {
        let error = || self.outcome().unwrap_err();
        let mut guard = table.lock().unwrap();
        let wakers: Vec<Waker> = match self {
            Contender::Reply => guard
                .end(key, Some(LINK), self.outcome())
                .ok()
                .flatten()
                .into_iter()
                .collect(),
            Contender::Deadline => guard.expire(5, 8, error).into_iter().flatten().collect(),
            Contender::Lost => guard.end_link(LINK, error),
            Contender::Stop => guard.end_all(error),
        };
        drop(guard);
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// One request, and all of `contenders` at once; its caller waits, or gives up after its first look.
fn contend(contenders: &[Contender], gives_up: bool) {
    let table = Arc::new(Mutex::new(Table::default()));
    let (key, _) = table.lock().unwrap().insert(5, None);
    table.lock().unwrap().set_link(key, LINK);
    let threads = contenders.iter().map(|contender| {
        let (contender, table) = (*contender, table.clone());
        thread::spawn(move || contender.contend(&table, key))
    });
    let threads: Vec<_> = threads.collect();
    let sleep = Arc::new(Sleep(Notify::new()));
    let waker = Waker::from(sleep.clone());
    loop {
        let poll = table.lock().unwrap().poll(key, &waker);
        if let Poll::Ready(outcome) = poll {
            assert!(contenders.iter().any(|contender| contender.outcome() == outcome));
            break;
        }
        if gives_up {
            let unread = table.lock().unwrap().remove(key);
            drop(unread);
            break;
        }
        sleep.0.wait();
    }
    for thread in threads {
        thread.join().unwrap();
    }
    let mut table = table.lock().unwrap();
    assert!(table.poll(key, &waker).is_pending(), "a second terminal");
    assert_eq!((table.waiting(), table.any_submitted()), (0, false));
}

fn bounded(contenders: &'static [Contender], gives_up: bool) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.max_threads = 5;
    builder.check(move || contend(contenders, gives_up));
}

/// Five contend: a reply, the deadline, the loss of the link, the stop of the host, and the caller itself.
///
/// REQ: EX-87, EX-90, EX-91
#[test]
fn loom_five_contend_and_one_ends_it() {
    const FOUR: &[Contender] = &[Contender::Reply, Contender::Deadline, Contender::Lost, Contender::Stop];
    bounded(FOUR, true);
    bounded(FOUR, false);
}

/// All orders in which four contend; it takes minutes.
///
/// REQ: EX-87, EX-90
#[test]
#[ignore = "a part of `make soak`"]
fn soak_loom_four_contend_in_every_order() {
    const THREE: &[Contender] = &[Contender::Reply, Contender::Deadline, Contender::Stop];
    loom::model(|| contend(THREE, true));
    loom::model(|| contend(THREE, false));
}
