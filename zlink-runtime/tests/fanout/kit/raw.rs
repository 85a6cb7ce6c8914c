//! A peer that speaks ZMTP by hand, over TCP: a PUB or a SUB that does as a test likes.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use zlink_generated::contract::Note;
use zlink_generated::zlink_wire::RecordKind;
use zlink_runtime::prelude::*;
use zlink_runtime::rt;
use zlink_runtime::transport::zmtp::{
    Decoder, FrameLimits, Handshake, Head, Properties, Role, Security, encode_subscription, frame_head,
};

use super::wait::{SOON, within};

/// A connection whose handshake is done.
pub(crate) struct Raw {
    stream: TcpStream,
    held: Vec<u8>,
    decoder: Decoder,
}

/// What came.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Came {
    Message(Vec<Vec<u8>>),
    Command(Vec<u8>),
    End,
}

impl Raw {
    /// A subscriber of that host's publisher.
    pub(crate) async fn subscriber(publisher: &Host, socket: &str) -> Self {
        let endpoint = publisher.fanout("news").unwrap().endpoint().unwrap();
        let stream = TcpStream::connect(endpoint.as_str().trim_start_matches("tcp://"))
            .await
            .unwrap();
        Self::greet(stream, Role::Client, socket, 1).await
    }

    /// Takes the next connection, as a publisher of that minor version of ZMTP.
    pub(crate) async fn publisher(listener: &TcpListener, socket: &str, minor: u8) -> Self {
        let (stream, _) = within(SOON, listener.accept()).await.unwrap().unwrap();
        Self::greet(stream, Role::Server, socket, minor).await
    }

    async fn greet(mut stream: TcpStream, role: Role, socket: &str, minor: u8) -> Self {
        let properties = Properties::new().with("Socket-Type", socket);
        let mut handshake = Handshake::new(role, Security::Null, &properties);
        let mut greeting = handshake.take_output();
        greeting[11] = minor;
        stream.write_all(&greeting).await.unwrap();
        let mut held = vec![0; 512];
        loop {
            let count = within(SOON, stream.read(&mut held)).await.unwrap().unwrap();
            let taken = handshake.feed(&held[..count]).unwrap();
            stream.write_all(&handshake.take_output()).await.unwrap();
            if handshake.take_ready().is_some() || count == 0 {
                let held = held[taken..count].to_vec();
                let decoder = Decoder::new();
                return Self { stream, held, decoder };
            }
        }
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        // Where the other side has had enough, what comes next tells.
        let _ = self.stream.write_all(bytes).await;
    }

    /// Writes that again and again until the other side has had enough, on a thread of its own: that one never has to wait.
    pub(crate) fn flood(self, bytes: Vec<u8>) {
        let mut stream = self.stream.into_std().unwrap();
        stream.set_nonblocking(false).unwrap();
        std::thread::spawn(move || while std::io::Write::write_all(&mut stream, &bytes).is_ok() {});
    }

    pub(crate) async fn send(&mut self, frames: &[&[u8]]) {
        self.write(&message(frames)).await;
    }

    pub(crate) async fn subscribe(&mut self, subscribe: bool, topic: &[u8]) {
        let mut out = Vec::new();
        encode_subscription(&mut out, subscribe, topic);
        self.write(&out).await;
    }

    /// The next message, command or end, whenever that comes.
    pub(crate) async fn next(&mut self) -> Came {
        let mut frames = Vec::new();
        loop {
            let mut decoder = self.decoder.clone();
            let limits = FrameLimits::new(1 << 24);
            if let Some((from, head)) = decoder.head(&self.held, limits).unwrap() {
                let (Head::Frame { len, .. } | Head::Command { len }) = head;
                if let Some(body) = self.held.get(from..from + len) {
                    let body = body.to_vec();
                    self.held.drain(..from + len);
                    self.decoder = decoder;
                    match head {
                        Head::Command { .. } => return Came::Command(body),
                        Head::Frame { more, .. } => {
                            frames.push(body);
                            if !more {
                                return Came::Message(frames);
                            }
                        }
                    }
                    continue;
                }
            }
            match self.stream.read_buf(&mut self.held).await {
                Ok(0) | Err(_) => return Came::End,
                Ok(_) => {}
            }
        }
    }

    /// The same, soon.
    #[track_caller]
    pub(crate) fn soon(&mut self) -> impl Future<Output = Came> {
        let at = std::panic::Location::caller();
        async move {
            match within(SOON, self.next()).await {
                Some(came) => came,
                None => panic!("{at}: nothing came"),
            }
        }
    }
}

/// A message of those frames as it travels.
pub(crate) fn message(frames: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    for (at, frame) in frames.iter().enumerate() {
        let (head, from) = frame_head(frame.len(), at + 1 < frames.len(), false);
        out.extend_from_slice(&head[from..]);
        out.extend_from_slice(frame);
    }
    out
}

/// The record of an event.
pub(crate) fn event(channel: &str, packet: &str, note: &Note) -> Vec<u8> {
    let mut record = vec![1, RecordKind::FanoutEvent.to_wire(), 0, 0, 0xff, 0xff, 0xff, 0xff];
    for name in [channel, packet] {
        record.push(u8::try_from(name.len()).unwrap());
        record.extend_from_slice(name.as_bytes());
    }
    rt::encode(note, |body| record.extend_from_slice(body)).unwrap();
    record
}
