//! Single steps of a request, where the crate shows them.

use std::hint::black_box;
use std::time::Instant;

use zlink_runtime::bench::Selection;
use zlink_runtime::permit::HostPermits;

use crate::Failure;
use crate::codec::nanoseconds;
use crate::sample::{Effort, emit};

/// One round.
pub fn measure(effort: Effort) -> Result<(), Failure> {
    permits(effort)?;
    for members in [1, 3, 100] {
        selection(effort, members)?;
    }
    Ok(())
}

fn permits(effort: Effort) -> Result<(), Failure> {
    let permits = HostPermits::new(10_000);
    let source = permits.source();
    let alone = nanoseconds(effort, || drop(black_box(source.try_acquire(1).and_then(|mut grant| grant.take()))));
    emit("micro permits, alone", "zlink acquire + return", "ns", alone);
    let each = effort.pick(2_000_000_u32, 400_000);
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let source = permits.source();
                for _ in 0..each {
                    drop(black_box(source.try_acquire(1).and_then(|mut grant| grant.take())));
                }
            });
        }
    });
    let together = begin.elapsed().as_nanos() as f64 / f64::from(4 * each);
    emit("micro permits, 4 threads", "zlink acquire + return", "ns", together);
    if permits.in_use() != 0 {
        return Err("permits are lost".into());
    }
    Ok(())
}

/// A pick from members whose weights differ, and so have a long period.
fn selection(effort: Effort, members: u16) -> Result<(), Failure> {
    let weights: Vec<u16> = (0..members).map(|number| 1 + number % 7).collect();
    let selection = Selection::new(&weights);
    if selection.pick().is_none() {
        return Err("nothing can be picked".into());
    }
    let pick = nanoseconds(effort, || drop(black_box(selection.pick())));
    emit("micro select-one", &format!("zlink pick of {members}"), "ns", pick);
    Ok(())
}
