//! How often the bytes of a message are copied on their way: counted at the allocator, between two hosts in one thread.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    unsafe_code,
    reason = "a test may fail; an allocator that counts cannot be written without `unsafe`"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use zlink_generated::contract::{Brief, Note, ORDERS, OrdersHandler, orders_client, orders_server};
use zlink_runtime::error::HandlerError;
use zlink_runtime::prelude::*;

/// Bytes that were ever allocated: what grows in place counts what it grows by.
static BYTES: AtomicUsize = AtomicUsize::new(0);

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call goes to the system's allocator as it came; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        BYTES.fetch_add(size.saturating_sub(layout.size()), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(place, layout, size) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(place, layout) }
    }
}

/// Counts what it is told, and answers with nothing.
struct Taker(Arc<AtomicUsize>);

impl OrdersHandler for Taker {
    async fn ask(&self, _: &ChannelContext<'_>, request: Note) -> Result<Note, HandlerError> {
        self.0.fetch_add(request.body.len(), Ordering::Relaxed);
        Ok(Note::default())
    }

    async fn hurry(&self, _: &ChannelContext<'_>, request: Note) -> Result<Note, HandlerError> {
        Ok(request)
    }

    async fn brief(&self, _: &ChannelContext<'_>, request: Brief) -> Result<Brief, HandlerError> {
        Ok(request)
    }

    async fn tell(&self, _: &ChannelContext<'_>, message: Note) -> Result<(), HandlerError> {
        self.0.fetch_add(message.body.len(), Ordering::Relaxed);
        Ok(())
    }
}

/// A large message is allocated once as a record at its sender, once as it is received, and once as the value that the
/// handler gets; beside that there is little. The last is the decode; the one before is what a socket forces.
///
/// REQ: MSG-505
#[tokio::test]
async fn a_message_is_copied_when_it_is_sent_when_it_is_received_and_when_it_is_decoded() {
    // One that leaves its encoding buffer behind for the next.
    const SIZE: usize = 60_000;
    const ROUNDS: usize = 100;
    let taken = Arc::new(AtomicUsize::new(0));
    let server = orders_server(Taker(taken.clone()));
    let s = Host::builder().mesh("shop", |mesh| mesh.rid("s").listen("tcp://127.0.0.1:0").serve(server));
    let s = s.start().await.unwrap();
    let to = s.mesh("shop").unwrap().endpoint().to_string();
    let c = Host::builder().mesh("shop", |mesh| {
        mesh.rid("c").listen("tcp://127.0.0.1:0").connect(to).client(ORDERS)
    });
    let c = c.start().await.unwrap();
    c.mesh("shop")
        .unwrap()
        .ready(ORDERS, 1, std::time::Duration::from_secs(60))
        .await
        .unwrap();
    let orders = orders_client(&c);
    let messages = |count: usize| {
        let note = |_| Note {
            body: vec![7; SIZE],
            ..Note::default()
        };
        (0..count).map(note).collect::<Vec<_>>()
    };
    // What is kept for later messages is there after a few.
    for note in messages(4) {
        orders.ask(note).await.unwrap();
    }
    let ready = messages(ROUNDS);
    let before = BYTES.load(Ordering::Relaxed);
    for note in ready {
        orders.ask(note).await.unwrap();
    }
    let each = (BYTES.load(Ordering::Relaxed) - before) / ROUNDS;
    assert_eq!(taken.load(Ordering::Relaxed), (ROUNDS + 4) * SIZE);
    assert!(each > 2 * SIZE, "{each} bytes cannot be all");
    assert!(
        each < 3 * SIZE + SIZE / 4,
        "{each} bytes are allocated for a message of {SIZE}"
    );
}
