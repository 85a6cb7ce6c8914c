//! The floor: frames on one TCP connection, those that wait joined into one write; no schema, route, queue or limit.
//!
//! A frame is its length without itself (u32), its kind (u8), the request's number (u64), and the payload.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};

use super::{Caller, OneWay, Peer};
use crate::Failure;

const HEAD: usize = 9;
const READ: usize = 64 * 1024;
/// Bytes that wait before a send without reply does.
const BACKLOG: usize = 256 * 1024;

const CALL: u8 = 0;
const PUT: u8 = 1;
const TAKEN: u8 = 2;

struct Frame {
    kind: u8,
    number: u64,
    payload: Bytes,
}

fn put_frame(out: &mut BytesMut, kind: u8, number: u64, payload: &[u8]) {
    let length = u32::try_from(HEAD + payload.len()).expect("small payloads");
    out.reserve(4 + HEAD + payload.len());
    out.put_u32_le(length);
    out.put_u8(kind);
    out.put_u64_le(number);
    out.put_slice(payload);
}

fn take_frame(buffer: &mut BytesMut) -> Option<Frame> {
    let length = u32::from_le_bytes(*buffer.first_chunk()?) as usize;
    if buffer.len() < 4 + length {
        return None;
    }
    buffer.advance(4);
    let (kind, number) = (buffer.get_u8(), buffer.get_u64_le());
    let payload = buffer.split_to(length - HEAD).freeze();
    Some(Frame { kind, number, payload })
}

pub struct Raw;

impl Peer for Raw {
    const NAME: &'static str = "raw TCP";
    type Caller = RawCaller;

    async fn serve(tell: impl FnOnce(String) + Send) -> Result<(), Failure> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        tell(listener.local_addr()?.to_string());
        loop {
            tokio::spawn(answer(listener.accept().await?.0));
        }
    }

    async fn connect(address: &str) -> Result<RawCaller, Failure> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (read, write) = stream.into_split();
        let shared = Arc::new(Shared::default());
        tokio::spawn(write_all(shared.clone(), write));
        tokio::spawn(read_all(shared.clone(), read));
        Ok(RawCaller(shared))
    }
}

/// Serves one connection: what one read brought is answered with one write.
async fn answer(mut stream: TcpStream) -> Result<(), Failure> {
    stream.set_nodelay(true)?;
    let (mut input, mut output) = (BytesMut::new(), BytesMut::new());
    let mut taken = 0_u64;
    loop {
        input.reserve(READ);
        if stream.read_buf(&mut input).await? == 0 {
            return Ok(());
        }
        while let Some(frame) = take_frame(&mut input) {
            match frame.kind {
                PUT => taken += 1,
                TAKEN => put_frame(&mut output, TAKEN, frame.number, &taken.to_le_bytes()),
                kind => put_frame(&mut output, kind, frame.number, &frame.payload),
            }
        }
        stream.write_all(&output).await?;
        output.clear();
    }
}

#[derive(Default)]
struct Shared {
    state: parking::Lock<State>,
    /// Frames wait, and the writer sleeps.
    work: Notify,
    /// What waited has been taken by the writer.
    room: Notify,
    number: AtomicU64,
    asleep: AtomicBool,
}

#[derive(Default)]
struct State {
    output: BytesMut,
    waiting: std::collections::HashMap<u64, oneshot::Sender<Bytes>>,
}

impl Shared {
    fn wake_writer(&self) {
        if self.asleep.swap(false, Ordering::AcqRel) {
            self.work.notify_one();
        }
    }
}

async fn write_all(shared: Arc<Shared>, mut stream: OwnedWriteHalf) -> Result<(), Failure> {
    let mut batch = BytesMut::new();
    loop {
        {
            let state = shared.state.lock();
            shared.asleep.store(state.output.is_empty(), Ordering::Release);
        }
        if shared.asleep.load(Ordering::Acquire) {
            shared.work.notified().await;
        }
        if shared.state.lock().waiting.len() != 1 {
            // A woken task runs next: without this each caller's frame would get a write of its own.
            tokio::task::yield_now().await;
        }
        std::mem::swap(&mut batch, &mut shared.state.lock().output);
        shared.room.notify_waiters();
        stream.write_all(&batch).await?;
        batch.clear();
    }
}

async fn read_all(shared: Arc<Shared>, mut stream: OwnedReadHalf) -> Result<(), Failure> {
    let mut input = BytesMut::new();
    loop {
        input.reserve(READ);
        if stream.read_buf(&mut input).await? == 0 {
            return Ok(());
        }
        while let Some(frame) = take_frame(&mut input) {
            if let Some(waiting) = shared.state.lock().waiting.remove(&frame.number) {
                // A caller that has given up needs no reply.
                let _ = waiting.send(frame.payload);
            }
        }
    }
}

#[derive(Clone)]
pub struct RawCaller(Arc<Shared>);

impl RawCaller {
    async fn request(&self, kind: u8, payload: &[u8]) -> Result<Bytes, Failure> {
        let number = self.0.number.fetch_add(1, Ordering::Relaxed);
        let (reply, waiting) = oneshot::channel();
        {
            let mut state = self.0.state.lock();
            state.waiting.insert(number, reply);
            put_frame(&mut state.output, kind, number, payload);
        }
        self.0.wake_writer();
        Ok(waiting.await?)
    }
}

impl Caller for RawCaller {
    async fn call(&mut self, payload: &'static [u8]) -> Result<usize, Failure> {
        Ok(self.request(CALL, payload).await?.len())
    }
}

impl OneWay for RawCaller {
    async fn put(&mut self, payload: &'static [u8]) -> Result<(), Failure> {
        loop {
            let room = self.0.room.notified();
            {
                let mut state = self.0.state.lock();
                if state.output.len() < BACKLOG {
                    put_frame(&mut state.output, PUT, 0, payload);
                    drop(state);
                    self.0.wake_writer();
                    return Ok(());
                }
            }
            room.await;
        }
    }

    async fn taken(&mut self) -> Result<u64, Failure> {
        let reply = self.request(TAKEN, &[]).await?;
        Ok(u64::from_le_bytes(reply.as_ref().try_into()?))
    }
}

/// A mutex that a panic does not poison.
mod parking {
    #[derive(Default)]
    pub struct Lock<T>(std::sync::Mutex<T>);

    impl<T> Lock<T> {
        pub fn lock(&self) -> std::sync::MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
        }
    }
}
