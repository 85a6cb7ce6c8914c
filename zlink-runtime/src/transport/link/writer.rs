//! The writer of one lane: takes all that waits, sends it as one message, and never waits for more.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Buf;
use tokio::io::AsyncWriteExt;
use tokio::time::{Sleep, sleep};

use super::chunk::Chunk;
use super::queue::{SendQueue, Work};
use super::shared::Shared;
use super::state::yield_once;
use super::stream::WriteHalf;
use crate::limit::ALONE_BYTES;
use crate::transport::CloseReason;

/// How long a writer without work leaves room to senders that do not come for it.
const GRANT_TIME: Duration = Duration::from_millis(50);

/// Runs until the queue is closed and empty, or the connection breaks.
pub(super) async fn run(shared: Arc<Shared>, lane: usize, mut write: Box<dyn WriteHalf>) {
    let queue = &shared.queues[lane];
    let mut control = Vec::new();
    let mut written = None;
    let mut batched = false;
    let mut patience = None;
    while let Some(work) = poll_fn(|cx| poll_work(queue, cx, &mut written, &mut patience)).await {
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

/// Waits for work, and for senders that were granted room only as long as they may be expected to come.
fn poll_work(
    queue: &SendQueue,
    cx: &mut Context<'_>,
    written: &mut Option<Chunk>,
    patience: &mut Option<Pin<Box<Sleep>>>,
) -> Poll<Option<Work>> {
    let work = queue.poll_work(cx, written);
    if work.is_ready() || !queue.holds_for_senders() {
        *patience = None;
        return work;
    }
    let waits = patience.get_or_insert_with(|| Box::pin(sleep(GRANT_TIME)));
    if waits.as_mut().poll(cx).is_ready() {
        *patience = None;
        queue.lapse();
        // Who is granted room now is looked after in turn.
        cx.waker().wake_by_ref();
    }
    Poll::Pending
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
