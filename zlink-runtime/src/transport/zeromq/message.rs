//! The messages of this transport: one frame each, a tag and what belongs to it.
//!
//! | tag | what follows |
//! |---|---|
//! | 1 hello | lane `u8`, link `[u8; 16]`, run `u64`, socket `u8`, budget `u64`, identity (the rest): the first message, both ways |
//! | 2 records | any number of: length `u32`, record |
//! | 3 room | bytes `u64` that were handed on: the sender may have as many more on their way |
//! | 4 flow | version `u64`, paused `u8` |
//! | 5 ping, 6 pong, 7 end | nothing; an end is the last message of its direction |
//!
//! Numbers are little-endian.

use bytes::{Buf, BufMut, Bytes};

use crate::id::{Generation, Rid};
use crate::permit::Flow;
use crate::transport::{Offer, SocketType};

/// Brings the lanes of one link together.
pub(super) type Nonce = [u8; 16];

/// Which of a link's connections one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Whole = 0,
    Data = 1,
    Completion = 2,
}

const SOCKETS: [SocketType; 2] = [SocketType::Router, SocketType::Dealer];
const PARTS: [Part; 3] = [Part::Whole, Part::Data, Part::Completion];

#[derive(Clone, Debug)]
pub(super) struct Hello {
    pub(super) part: Part,
    pub(super) link: Nonce,
    pub(super) generation: Generation,
    pub(super) socket: SocketType,
    /// Bytes that its sender takes in before it hands them on.
    pub(super) budget: u64,
    pub(super) identity: Rid,
}

impl Hello {
    pub(super) fn of(offer: &Offer, part: Part, link: Nonce) -> Self {
        Self {
            part,
            link,
            generation: offer.generation,
            socket: offer.socket,
            budget: offer.receives(offer.budget) as u64,
            identity: offer.identity.clone(),
        }
    }
}

pub(super) enum Message {
    Hello(Hello),
    Records(Bytes),
    Room(u64),
    Flow(Flow),
    Ping,
    Pong,
    End,
}

pub(super) const RECORDS: u8 = 2;
/// Before each record.
pub(super) const PREFIX: usize = 4;

impl Message {
    pub(super) fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        match self {
            Message::Hello(hello) => {
                out.put_u8(1);
                out.put_u8(hello.part as u8);
                out.put_slice(&hello.link);
                out.put_u64_le(hello.generation.to_wire());
                out.put_u8(u8::from(hello.socket != SocketType::Router));
                out.put_u64_le(hello.budget);
                out.put_slice(hello.identity.as_bytes());
            }
            Message::Records(records) => {
                out.put_u8(RECORDS);
                out.put_slice(records);
            }
            Message::Room(bytes) => {
                out.put_u8(3);
                out.put_u64_le(*bytes);
            }
            Message::Flow(flow) => {
                out.put_u8(4);
                out.put_u64_le(flow.version);
                out.put_u8(u8::from(flow.paused));
            }
            Message::Ping => out.put_u8(5),
            Message::Pong => out.put_u8(6),
            Message::End => out.put_u8(7),
        }
        out.into()
    }

    /// `None` where it is no message of this transport.
    pub(super) fn decode(mut frame: Bytes) -> Option<Self> {
        let message = match frame.try_get_u8().ok()? {
            1 => {
                let part = *PARTS.get(usize::from(frame.try_get_u8().ok()?))?;
                let mut link = Nonce::default();
                frame.try_copy_to_slice(&mut link).ok()?;
                let generation = Generation::from_wire(frame.try_get_u64_le().ok()?)?;
                let socket = *SOCKETS.get(usize::from(frame.try_get_u8().ok()?))?;
                let budget = frame.try_get_u64_le().ok()?;
                let identity = Rid::new(std::mem::take(&mut frame)).ok()?;
                Message::Hello(Hello {
                    part,
                    link,
                    generation,
                    socket,
                    budget,
                    identity,
                })
            }
            RECORDS => Message::Records(std::mem::take(&mut frame)),
            3 => Message::Room(frame.try_get_u64_le().ok()?),
            4 => Message::Flow(Flow {
                version: frame.try_get_u64_le().ok()?,
                paused: frame.try_get_u8().ok()? != 0,
            }),
            5 => Message::Ping,
            6 => Message::Pong,
            7 => Message::End,
            _ => return None,
        };
        frame.is_empty().then_some(message)
    }
}
