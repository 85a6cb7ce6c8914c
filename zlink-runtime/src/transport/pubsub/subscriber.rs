//! A SUB socket's one connection: says what it wants, and reads what comes, cut into messages. What arrived decides how
//! much is held, never what was announced.
//!
//! It takes no permit and hands nothing on: whoever reads asks for a permit first. It must not know what a message says.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::Poll;

use bytes::{BufMut, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout};

use super::{Connections, Topics};
use crate::id::MAX_ID_BYTES;
use crate::limit::{ALONE_BYTES, HANDSHAKE_TIME, MESSAGE_FRAMES, RECEIVE_BUDGET_BYTES};
use crate::transport::link::greet::{SOCKET_TYPE, shake};
use crate::transport::link::rotation::Rotation;
use crate::transport::link::state::yield_once;
use crate::transport::link::stream::{Stream, reach};
use crate::transport::zmtp::{
    Command, Decoder, FrameLimits, Head, Properties, Role, ZmtpError, encode_pong, encode_subscription, frame_head,
};
use crate::transport::{Endpoint, TransportError};

/// Bytes that a read asks for where the one before brought less.
const FIRST_READ: usize = 4 << 10;

/// A message.
#[derive(Debug)]
pub(crate) struct Received {
    /// The first frame, or as much of it as is more than a topic can be.
    pub(crate) topic: Bytes,
    /// The second frame; empty where there is none.
    pub(crate) record: Bytes,
    /// How many there were.
    pub(crate) frames: usize,
}

/// A connection to one publisher.
pub(crate) struct Incoming {
    stream: Stream,
    buf: BytesMut,
    /// The bytes of `buf` that whole frames of an unfinished message take.
    at: usize,
    /// Where its first two frames are.
    parts: [(usize, usize); 2],
    frames: usize,
    /// The commands between its frames, which are held with them.
    amid: usize,
    decoder: Decoder,
    limits: FrameLimits,
    /// How much the next read asks for.
    room: usize,
    /// What has to be written.
    owed: Vec<u8>,
    rotation: Rotation,
}

impl Connections {
    /// Makes one attempt to connect to a publisher, and tells it what is wanted.
    ///
    /// # Errors
    /// Where it cannot be reached, or its handshake fails or takes too long.
    pub(crate) async fn subscribe(
        &self,
        endpoint: &Endpoint,
        topics: &Topics,
        max_record: usize,
    ) -> Result<Incoming, TransportError> {
        let failed = |cause: String| TransportError::Handshake {
            endpoint: endpoint.to_string(),
            cause,
        };
        let stream = reach(&*self.sockets, endpoint).await?;
        match timeout(HANDSHAKE_TIME, self.greet(stream, topics, max_record)).await {
            Ok(greeted) => greeted.map_err(failed),
            Err(_) => Err(failed("it took longer than two seconds".to_owned())),
        }
    }

    async fn greet(&self, stream: Stream, topics: &Topics, max_record: usize) -> Result<Incoming, String> {
        let properties = Properties::new().with(SOCKET_TYPE, *b"SUB");
        let (mut stream, leftover, ready) = shake(stream, Role::Client, &self.config.security, &properties).await?;
        match ready.properties.get(SOCKET_TYPE) {
            Some(b"PUB" | b"XPUB") => {}
            other => {
                let other = other.unwrap_or_default().escape_ascii();
                return Err(format!("a SUB cannot talk to a {other}"));
            }
        }
        let mut wanted = Vec::new();
        for topic in topics.iter() {
            if ready.minor > 0 {
                encode_subscription(&mut wanted, true, topic);
            } else {
                let (head, from) = frame_head(1 + topic.len(), false, false);
                wanted.extend_from_slice(&head[from..]);
                wanted.push(1);
                wanted.extend_from_slice(topic);
            }
        }
        let written = stream.write.write_all(&wanted).await;
        written.map_err(|error| error.to_string())?;
        Ok(Incoming {
            stream,
            buf: BytesMut::from(&leftover[..]),
            at: 0,
            parts: [(0, 0); 2],
            frames: 0,
            amid: 0,
            decoder: Decoder::new(),
            limits: FrameLimits::new(max_record.saturating_add(MAX_ID_BYTES)),
            room: FIRST_READ,
            owed: Vec::new(),
            rotation: Rotation::default(),
        })
    }
}

impl Incoming {
    /// The next message that has arrived.
    ///
    /// # Errors
    /// Where the publisher breaks the protocol.
    pub(crate) fn next(&mut self) -> Result<Option<Received>, ZmtpError> {
        loop {
            let mut next = self.decoder.clone();
            let rest = self.buf.get(self.at..).unwrap_or_default();
            let Some((from, head)) = next.head(rest, self.limits)? else {
                return Ok(None);
            };
            let (Head::Command { len } | Head::Frame { len, .. }) = head;
            let Some(body) = rest.get(from..from + len) else {
                return Ok(None);
            };
            self.decoder = next;
            match head {
                Head::Command { .. } => {
                    if let Command::Ping { context, .. } = Command::decode(body)? {
                        self.owed.clear();
                        encode_pong(&mut self.owed, context);
                    }
                    if self.frames == 0 {
                        let _ = self.buf.split_to(self.at + from + len);
                        self.at = 0;
                    } else {
                        self.amid += 1;
                        if self.amid > MESSAGE_FRAMES {
                            return Err(ZmtpError::Unexpected("commands without end amid a message"));
                        }
                        self.at += from + len;
                    }
                }
                Head::Frame { more, .. } => {
                    let start = self.at + from;
                    if let Some(part) = self.parts.get_mut(self.frames) {
                        *part = (start, start + len);
                    }
                    self.frames += 1;
                    self.at = start + len;
                    if !more {
                        return Ok(Some(self.take()));
                    }
                }
            }
        }
    }

    /// What lies in front of the buffer as a whole message. A small one holds on to no large buffer.
    fn take(&mut self) -> Received {
        let whole = self.buf.split_to(std::mem::take(&mut self.at)).freeze();
        let frames = std::mem::take(&mut self.frames);
        self.amid = 0;
        let [topic, record] = std::mem::take(&mut self.parts);
        let topic = topic.0..topic.1.min(topic.0 + MAX_ID_BYTES + 1);
        let record = match whole.slice(if frames == 2 { record.0..record.1 } else { 0..0 }) {
            large if large.len() >= ALONE_BYTES => large,
            small => Bytes::copy_from_slice(&small),
        };
        self.rotation.begin(Instant::now());
        self.rotation.add(whole.len(), Instant::now);
        Received {
            topic: Bytes::copy_from_slice(&whole[topic]),
            record,
            frames,
        }
    }

    /// Lets others run where this connection has had its share.
    pub(crate) async fn rotate(&mut self) {
        if self.rotation.is_spent() {
            self.rotation = Rotation::default();
            yield_once().await;
        }
    }

    /// Waits until a read brings something, or the end.
    ///
    /// # Errors
    /// Where the connection broke.
    pub(crate) async fn readable(&mut self) -> io::Result<()> {
        if !self.owed.is_empty() {
            let owed = std::mem::take(&mut self.owed);
            self.stream.write.write_all(&owed).await?;
        }
        let mut waited = false;
        poll_fn(|cx| {
            let readable = self.stream.read.poll_readable(cx);
            waited |= readable.is_pending();
            readable
        })
        .await?;
        if waited {
            self.rotation = Rotation::default();
        }
        Ok(())
    }

    /// Reads once, without waiting; `false` at the end.
    ///
    /// # Errors
    /// Where the connection broke.
    pub(crate) async fn read(&mut self) -> io::Result<bool> {
        if self.buf.is_empty() && self.buf.capacity() > 2 * RECEIVE_BUDGET_BYTES {
            self.buf = BytesMut::new();
        }
        self.buf.reserve(self.room);
        let mut room = (&mut self.buf).limit(self.room);
        let mut reading = pin!(self.stream.read.read_buf(&mut room));
        // One attempt: where the readiness was no more than a rumour, the permit must not wait for the peer.
        match poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx))).await {
            Poll::Pending => Ok(true),
            Poll::Ready(read) => {
                let count = read?;
                self.room = if count == self.room {
                    RECEIVE_BUDGET_BYTES
                } else {
                    FIRST_READ
                };
                Ok(count > 0)
            }
        }
    }
}
