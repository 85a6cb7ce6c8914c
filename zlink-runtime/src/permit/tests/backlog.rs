//! Small owners with a queue each: deliveries to several of them, seals, and backlogs that were restored.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::{HostPermits, Permit, poll, take};
use crate::permit::{Backlog, Closed};

/// A queue of jobs, each with its permit; those that were restored have none yet.
#[derive(Default)]
struct Owner {
    backlog: VecDeque<u32>,
    /// The permit of the first job of the backlog, and the right to keep it.
    kept: Option<(Permit, Backlog)>,
    jobs: VecDeque<(u32, Permit)>,
}

impl Owner {
    fn admit(&mut self, job: u32, mut permit: Permit) {
        permit.queue();
        self.jobs.push_back((job, permit));
    }

    /// Opens behind a backlog, once it has the permit for the first job.
    fn open(&mut self, mut permit: Permit, keeper: Backlog) {
        permit.queue();
        self.kept = Some((permit, keeper));
    }

    /// Starts the next job.
    fn start(&mut self) -> Option<u32> {
        if let Some(job) = self.backlog.pop_front() {
            let (permit, keeper) = self.kept.take()?;
            match self.backlog.is_empty() {
                true => permit.start(),
                false => self.kept = Some((permit.hand_on(), keeper)),
            }
            return Some(job);
        }
        let (job, permit) = self.jobs.pop_front()?;
        permit.start();
        Some(job)
    }

    /// Leaves all that waits to whoever restores it, and its permits to whoever needs them.
    fn seal(&mut self) -> VecDeque<u32> {
        self.jobs.drain(..).map(|(job, _)| job).collect()
    }
}

fn first(keeper: &mut Backlog) -> Poll<Result<Permit, Closed>> {
    keeper.poll_first(&mut Context::from_waker(Waker::noop()))
}

fn opened(permits: &HostPermits, owner: &mut Owner) {
    let mut keeper = permits.backlog();
    match first(&mut keeper) {
        Poll::Ready(Ok(permit)) => owner.open(permit, keeper),
        other => panic!("it cannot open: {other:?}"),
    }
}

/// One record, three owners: a permit for each, queued at once, and none in hand.
///
/// REQ: PM-21, PM-33, PM-24
#[test]
fn each_callback_of_one_record_has_a_permit() {
    let permits = HostPermits::new(10);
    let mut owners = [Owner::default(), Owner::default(), Owner::default()];
    let payload = Arc::new(vec![0_u8; 1000]);
    let mut source = permits.source();
    let record = take(&mut source, 1).take();
    let mut delivery = Box::pin(source.serve_each(record, owners.iter_mut(), |owner, permit| {
        let _shared = payload.clone();
        owner.admit(1, permit);
    }));
    let end = delivery.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(end, Poll::Ready(Ok(()))));
    drop(delivery);
    assert_eq!((permits.status().reserved, permits.status().queued), (0, 3));
    for (left, owner) in [2, 1, 0].into_iter().zip(&mut owners) {
        assert_eq!(owner.start(), Some(1));
        assert_eq!(permits.in_use(), left);
    }

    // A record that nobody matches returns its permit.
    let record = take(&mut source, 1).take();
    let mut nobody = Box::pin(source.serve_each(record, std::iter::empty::<u32>(), |_, _| {}));
    assert!(nobody.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    assert_eq!(permits.in_use(), 0);
}

/// Two deliveries to three owners each, and fewer permits than that: what holds none cannot block the other.
///
/// REQ: PM-22, PM-23, PM-33, PM-91
#[test]
fn a_delivery_to_many_hoards_nothing() {
    for max in 1..4 {
        let permits = HostPermits::new(max);
        let owners: Vec<_> = (0..3).map(|_| parking_lot::Mutex::new(Owner::default())).collect();
        let mut sources = [permits.source(), permits.source()];
        let mut deliveries: Vec<_> = (1..)
            .zip(&mut sources)
            .map(|(job, source)| {
                Box::pin(source.serve_each(None, &owners, move |owner, permit| owner.lock().admit(job, permit)))
            })
            .collect();
        let (mut ran, mut ended) = (vec![Vec::new(); 3], 0);
        while ended < 2 || permits.in_use() > 0 {
            deliveries.retain_mut(|delivery| {
                let end = delivery.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                ended += usize::from(end.is_ready());
                end.is_pending()
            });
            let status = permits.status();
            assert!(status.queued <= max);
            let before = ran.iter().map(Vec::len).sum::<usize>();
            for (owner, ran) in owners.iter().zip(&mut ran) {
                if let Some(job) = owner.lock().start() {
                    ran.push(job);
                    break;
                }
            }
            assert!(
                ran.iter().map(Vec::len).sum::<usize>() > before,
                "with {max}: nothing can start"
            );
        }
        for ran in &mut ran {
            ran.sort_unstable();
            assert_eq!(*ran, [1, 2], "each owner got each record once");
        }
    }
}

/// REQ: PM-34
#[test]
fn a_publisher_skips_its_own_targets_rather_than_wait() {
    let permits = HostPermits::new(2);
    let (mut owner, source) = (Owner::default(), permits.source());
    let mut publish = |job| {
        source
            .try_acquire(1)
            .and_then(|mut grant| grant.take())
            .map(|permit| owner.admit(job, permit))
    };
    assert!(publish(1).is_some() && publish(2).is_some());
    assert!(publish(3).is_none(), "skipped");
    let mut waiting = permits.source();
    assert!(poll(&mut waiting, 1).is_pending());
    owner.start();
    let mut publish = |job| {
        source
            .try_acquire(1)
            .and_then(|mut grant| grant.take())
            .map(|permit| owner.admit(job, permit))
    };
    assert!(publish(4).is_none(), "the permit is the one's that waits");
}

/// REQ: PM-38, PM-39
#[test]
fn sealed_work_leaves_its_permits_and_takes_new_ones() {
    let permits = HostPermits::new(60);
    let mut owner = Owner::default();
    let mut grant = take(&mut permits.source(), 50);
    for job in 0..50 {
        let permit = grant.take().unwrap();
        owner.admit(job, permit);
    }
    let others = take(&mut permits.source(), 10);
    let mut waiting = permits.source();
    assert!(poll(&mut waiting, 99).is_pending());
    let sealed = owner.seal();
    let status = permits.status();
    assert_eq!(
        (sealed.len(), status.in_use(), status.queued),
        (50, 11, 0),
        "50 less, and one for the one that waited"
    );
    drop(take(&mut waiting, 99));
    assert_eq!(permits.in_use(), 10);

    let mut restored = Owner {
        backlog: sealed,
        ..Owner::default()
    };
    opened(&permits, &mut restored);
    assert_eq!(permits.in_use(), 11, "one for the first job, whatever follows it");
    let ran: Vec<_> = std::iter::from_fn(|| restored.start()).collect();
    assert!(ran.into_iter().eq(0..50), "each once, in order");
    assert_eq!(permits.in_use(), 10);
    drop(others);
}

/// REQ: PM-39
#[test]
fn a_restored_backlog_runs_before_what_is_sent_to_it_directly() {
    let permits = HostPermits::new(1);
    let mut owner = Owner {
        backlog: (0..3).collect(),
        ..Owner::default()
    };
    opened(&permits, &mut owner);
    let mut direct = permits.source();
    let mut ran = Vec::new();
    let mut sent = 3;
    while ran.len() < 6 {
        while sent < 6
            && let Poll::Ready(Ok(mut grant)) = poll(&mut direct, 1)
        {
            owner.admit(sent, grant.take().unwrap());
            sent += 1;
        }
        ran.push(owner.start().expect("nothing can start"));
    }
    assert_eq!(ran, [0, 1, 2, 3, 4, 5]);
    assert_eq!(permits.in_use(), 0);
}

/// REQ: PM-39, PM-35
#[test]
fn at_most_a_quarter_of_the_permits_is_kept() {
    for (max, keepers) in [(1, 1), (7, 1), (8, 2), (100, 25)] {
        let permits = HostPermits::new(max);
        let mut owners: Vec<_> = (0..keepers)
            .map(|_| Owner {
                backlog: (0..2).collect(),
                ..Owner::default()
            })
            .collect();
        owners.iter_mut().for_each(|owner| opened(&permits, owner));
        assert_eq!(permits.in_use(), keepers);
        let mut next = permits.backlog();
        assert!(first(&mut next).is_pending());
        assert_eq!(
            (permits.in_use(), permits.status().waiting),
            (keepers, 0),
            "it waits for its turn and holds nothing"
        );
        owners[0].start();
        assert!(first(&mut next).is_pending(), "it has one job left");
        owners[0].start();
        assert!(first(&mut next).is_ready(), "of {max}");
    }
}

/// REQ: PM-39, PM-27, PM-36
#[test]
fn an_object_that_is_not_opened_after_all_leaves_nothing() {
    let permits = HostPermits::new(2);
    let mut held = take(&mut permits.source(), 2);
    let (mut opening, mut next) = (permits.backlog(), permits.backlog());
    assert!(first(&mut opening).is_pending());
    assert!(first(&mut next).is_pending());
    drop(held.take());
    assert_eq!(permits.in_use(), 2, "granted to the first");
    drop(opening);
    assert_eq!(permits.in_use(), 1);
    let kept = first(&mut next);
    assert!(matches!(kept, Poll::Ready(Ok(_))));
    let mut third = permits.backlog();
    assert!(first(&mut third).is_pending());
    permits.close();
    assert!(matches!(first(&mut third), Poll::Ready(Err(Closed))));
    drop((kept, held));
    assert_eq!(permits.in_use(), 0);
}

/// REQ: PM-39, OB-24
#[tokio::test(start_paused = true)]
async fn a_backlog_that_runs_is_no_stall() {
    let permits = HostPermits::new(1);
    let mut owner = Owner {
        backlog: (0..3).collect(),
        ..Owner::default()
    };
    opened(&permits, &mut owner);
    tokio::time::advance(Duration::from_secs(6)).await;
    assert_eq!(permits.status().stalled, Some(Duration::from_secs(6)));
    owner.start();
    assert_eq!(permits.status().stalled, Some(Duration::ZERO));
}
