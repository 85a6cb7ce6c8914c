//! The writer of one lane: takes all that waits, sends it as one message, and never waits for more.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Buf;
use tokio::io::AsyncWriteExt;

use super::shared::Shared;
use super::state::yield_once;
use super::stream::WriteHalf;
use crate::limit::ALONE_BYTES;
use crate::transport::CloseReason;

/// Runs until the queue is closed and empty, or the connection breaks.
pub(super) async fn run(shared: Arc<Shared>, lane: usize, mut write: Box<dyn WriteHalf>) {
    let queue = &shared.queues[lane];
    let mut control = Vec::new();
    let mut written = None;
    let mut batched = false;
    while let Some(work) = poll_fn(|cx| queue.poll_work(cx, &mut written)).await {
        // Others that are ready to run probably add to the batch. Whoever has one record in flight never waits here.
        let concurrent = work.records > 1 || batched || shared.last_batch.load(Ordering::Relaxed) > 1;
        if concurrent && work.bytes < ALONE_BYTES {
            yield_once().await;
        }
        control.clear();
        let chunk = queue.take(&mut control);
        let mut sent = Ok(());
        if !control.is_empty() {
            sent = write.write_all(&control).await;
        }
        if let (Ok(()), Some(mut chunk)) = (&sent, chunk) {
            batched = chunk.records() > 1;
            let (front, from, rest) = chunk.wire(queue.delimiter());
            let mut left = front[from..].chain(rest);
            while left.has_remaining() && sent.is_ok() {
                sent = match write.write_buf(&mut left).await {
                    Ok(0) => Err(std::io::ErrorKind::WriteZero.into()),
                    Ok(_) => Ok(()),
                    Err(error) => Err(error),
                };
                if left.has_remaining() {
                    shared.moved.fetch_add(1, Ordering::Relaxed);
                }
            }
            written = Some(chunk);
        }
        if let Err(error) = sent {
            failed(&shared, &error);
            break;
        }
    }
    shared.state.change(|now| {
        now.written_lanes += 1;
        true
    });
}

/// A peer that has gone may have sent more before: the reader finds that, and the end, by itself.
fn failed(shared: &Shared, error: &std::io::Error) {
    use std::io::ErrorKind::{BrokenPipe, ConnectionReset};
    if matches!(error.kind(), BrokenPipe | ConnectionReset) {
        super::reader::ending(shared);
    } else {
        shared.state.close(CloseReason::Lost(error.to_string()));
    }
}
