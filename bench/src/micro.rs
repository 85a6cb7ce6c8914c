//! Single steps of a request, where the crate shows them.

use std::hint::black_box;
use std::time::Instant;

use zlink_runtime::permit::HostPermits;

use crate::Failure;
use crate::codec::nanoseconds;
use crate::sample::{Effort, emit};

const TABLE: &str = "micro permits";

/// One round.
pub fn measure(effort: Effort) -> Result<(), Failure> {
    let permits = HostPermits::new(10_000);
    let source = permits.source();
    let alone = nanoseconds(effort, || drop(black_box(source.try_acquire(1).and_then(|mut grant| grant.take()))));
    emit(TABLE, "acquire + return, alone", "ns", alone);
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
    emit(TABLE, "acquire + return, 4 threads", "ns", begin.elapsed().as_nanos() as f64 / f64::from(4 * each));
    if permits.in_use() != 0 {
        return Err("permits are lost".into());
    }
    Ok(())
}
