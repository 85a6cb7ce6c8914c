//! What is kept for sends that turns await: who may have it, in which order, and what it does to the thresholds.

use std::time::Duration;

use super::{HostPermits, PermitLimits, Source, poll, queued, take};

/// Permits of which `max / 8` are kept, and the source of others with all of the rest.
fn full(max: u32) -> (HostPermits, Vec<crate::permit::Permit>) {
    let permits = HostPermits::with_limits(PermitLimits::new(max, 80, 60).unwrap().with_reserve());
    let mut grant = take(&mut permits.source(), max);
    let held = std::iter::from_fn(|| grant.take()).collect();
    (permits, held)
}

/// REQ: PM-64
#[test]
fn an_eighth_is_for_turns_alone_and_in_their_order() {
    let (permits, mut others) = full(24);
    assert_eq!((others.len(), permits.in_use()), (21, 21));
    let mut other = permits.source();
    assert!(poll(&mut other, 1).is_pending());
    assert!(permits.source().try_acquire(1).is_none());

    // Past the one that waits, three times, and no further.
    let mut turns: Vec<Source> = (0..5).map(|_| permits.turn_source()).collect();
    let mut lent: Vec<_> = turns.iter_mut().take(3).map(|turn| take(turn, 1)).collect();
    assert_eq!((permits.in_use(), permits.status().lent), (24, 3));
    assert!(poll(&mut turns[3], 1).is_pending());
    assert!(poll(&mut turns[4], 1).is_pending());
    assert!(permits.turn_source().try_acquire(1).is_none(), "not past turns");

    // What others return goes to who waits longest, of whatever kind.
    drop(others.pop());
    assert!(poll(&mut turns[3], 1).is_pending());
    let served = take(&mut other, 1);
    drop(others.pop());
    let fourth = take(&mut turns[3], 1);
    assert!(poll(&mut other, 1).is_pending());
    // What is of the reserve goes to a turn, though the other waits longer than a new one.
    drop(lent.pop());
    let fifth = take(&mut turns[4], 1);
    drop(lent.pop());
    assert!(poll(&mut other, 1).is_pending(), "it stays kept");
    assert_eq!((permits.in_use(), permits.status().lent), (23, 2));
    drop((served, fourth, fifth, lent, others));
    assert_eq!(take(&mut other, 1).len(), 1);
    drop(other);
    assert_eq!(
        (permits.in_use(), permits.status().lent, permits.status().waiting),
        (0, 0, 0)
    );
    assert_eq!(take(&mut permits.source(), 99).len(), 21);
}

/// A turn takes what all may have first, and asks for the reserve only then.
///
/// REQ: PM-64, PM-27
#[test]
fn the_reserve_is_the_last_resort_and_comes_back_whole() {
    let permits = HostPermits::with_limits(PermitLimits::new(8, 80, 60).unwrap().with_reserve());
    let mut turn = permits.turn_source();
    let all: Vec<_> = (0..8).map(|_| take(&mut turn, 1)).collect();
    assert_eq!(permits.status().lent, 1);
    assert!(poll(&mut turn, 1).is_pending());
    drop(all);
    assert_eq!(
        (permits.in_use(), permits.status().lent),
        (1, 0),
        "granted, and not fetched"
    );
    turn.cancel();
    assert_eq!(permits.in_use(), 0);

    // Given up, closed: whatever becomes of it, it comes back once.
    let (permits, others) = full(8);
    let (mut first, mut second) = (permits.turn_source(), permits.turn_source());
    let held = take(&mut first, 1);
    assert!(poll(&mut second, 1).is_pending());
    drop(held);
    assert_eq!(permits.status().lent, 1, "handed on");
    drop(second);
    assert_eq!(permits.status().lent, 0);
    let held = take(&mut first, 1);
    assert!(poll(&mut first, 1).is_pending());
    permits.close();
    assert!(matches!(poll(&mut first, 1), std::task::Poll::Ready(Err(_))));
    drop((held, others));
    assert_eq!((permits.in_use(), permits.status().lent), (0, 0));
}

/// Below eight permits none is kept. Whoever is not served without the reserve has been told to pause before.
///
/// REQ: PM-64, PM-80, PM-13
#[test]
fn the_flow_pauses_before_others_are_held_back() {
    for (max, reserve) in [(1, 0), (7, 0), (8, 1), (64, 8), (4_096, 512)] {
        let plain = PermitLimits::new(max, 80, 60).unwrap();
        let kept = plain.with_reserve();
        assert_eq!((kept.max(), kept.reserve()), (max, reserve));
        assert_eq!(
            (kept.pause_count(), kept.resume_count()),
            (plain.pause_count(), plain.resume_count()),
            "the usual thresholds are exact"
        );
    }
    for max in 1..200 {
        for (pause, resume) in [(100, 99), (90, 89), (88, 1), (1, 0)] {
            let kept = PermitLimits::new(max, pause, resume).unwrap().with_reserve();
            assert!(kept.resume_count() < kept.pause_count());
            assert!(kept.pause_count() <= max - kept.reserve());
        }
    }
    let permits = HostPermits::with_limits(PermitLimits::new(16, 100, 99).unwrap().with_reserve());
    let mut source = permits.source();
    let held = take(&mut source, 99);
    assert_eq!(held.len(), 14);
    assert!(permits.flow().paused);
    assert!(poll(&mut source, 1).is_pending());
}

/// REQ: OB-24, PM-64
#[tokio::test(start_paused = true)]
async fn a_host_stands_still_whether_the_reserve_is_used_or_not() {
    let (permits, mut others) = full(8);
    tokio::time::advance(Duration::from_secs(6)).await;
    assert_eq!(permits.status().stalled, Some(Duration::from_secs(6)));
    let mut turn = permits.turn_source();
    let mut grant = take(&mut turn, 1);
    let sent = queued(&mut grant);
    assert_eq!(permits.status().stalled, Some(Duration::from_secs(6)));
    // What was sent starts: something moves.
    sent.start();
    assert!(poll(&mut permits.source(), 1).is_pending());
    assert_eq!(permits.status().stalled, Some(Duration::ZERO));
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(permits.status().stalled, Some(Duration::from_secs(2)));
    drop(others.pop());
    assert_eq!(permits.status().stalled, None);
}
