//! One connection's handshake over its stream, and what it says about the peer.
//!
//! It must not know how two connections become a link, nor who is admitted.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::stream::Stream;
use crate::id::{Generation, Rid};
use crate::transport::zmtp::{Handshake, Properties, Ready, Role, Security};
use crate::transport::{Offer, SocketType};

/// Which of a link's connections this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it.
    Whole,
    /// The data lane of two.
    Data,
    /// The completion lane of two.
    Completion,
}

impl Part {
    const fn name(self) -> &'static str {
        match self {
            Part::Whole => "whole",
            Part::Data => "data",
            Part::Completion => "completion",
        }
    }
}

/// Brings two connections together: a random number that the dialler gives to both.
pub(super) type Nonce = [u8; 16];

/// What another link layer of ours says beyond ZMTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ours {
    pub(super) generation: Generation,
    /// Only a dialler says.
    pub(super) part: Option<(Part, Nonce)>,
}

/// A connection whose handshake is done.
pub(super) struct Greeted {
    pub(super) stream: Stream,
    /// What came after the handshake.
    pub(super) leftover: Vec<u8>,
    pub(super) socket: SocketType,
    pub(super) identity: Option<Rid>,
    pub(super) ours: Option<Ours>,
    /// Whether the peer knows PING.
    pub(super) pings: bool,
}

impl Greeted {
    /// Waits until the peer has closed this lane without a record on it: then the other never comes, and the place of
    /// this one is for somebody else.
    pub(super) fn abandoned(&self) -> impl Future<Output = ()> + Send + use<'_> {
        let (read, holds) = (&self.stream.read, !self.leftover.is_empty());
        async move {
            if holds || read.ended().await {
                std::future::pending::<()>().await;
            }
        }
    }
}

/// The property that names a socket type.
pub(in crate::transport) const SOCKET_TYPE: &str = "Socket-Type";
const IDENTITY: &str = "Identity";
const GENERATION: &str = "X-Generation";
const LANE: &str = "X-Lane";
const LINK: &str = "X-Link";

/// Runs the handshake. It has no time limit of its own.
pub(super) async fn greet(
    stream: Stream,
    role: Role,
    security: &Security,
    offer: &Offer,
    part: Option<(Part, Nonce)>,
) -> Result<Greeted, String> {
    let mut properties = Properties::new()
        .with(SOCKET_TYPE, socket_name(offer.socket))
        .with(IDENTITY, offer.identity.as_bytes())
        .with(GENERATION, offer.generation.to_wire().to_be_bytes());
    if let Some((part, nonce)) = part {
        properties = properties.with(LANE, part.name()).with(LINK, nonce);
    }
    let (stream, leftover, ready) = shake(stream, role, security, &properties).await?;
    describe(stream, leftover, offer.socket, &ready)
}

/// The same for any socket type: the stream, what came after the handshake, and what the peer said in it.
pub(in crate::transport) async fn shake(
    mut stream: Stream,
    role: Role,
    security: &Security,
    properties: &Properties,
) -> Result<(Stream, Vec<u8>, Ready), String> {
    let mut handshake = Handshake::new(role, security.clone(), properties);
    let mut buf = [0; 512];
    let mut fed = Ok((0, 0));
    loop {
        let output = handshake.take_output();
        stream
            .write
            .write_all(&output)
            .await
            .map_err(|error| error.to_string())?;
        let (taken, count) = fed.map_err(|error: crate::transport::zmtp::ZmtpError| error.to_string())?;
        if let Some(ready) = handshake.take_ready() {
            return Ok((stream, buf[taken..count].to_vec(), ready));
        }
        let count = stream.read.read(&mut buf).await.map_err(|error| error.to_string())?;
        if count == 0 {
            return Err("the peer closed the connection in the handshake".to_owned());
        }
        fed = handshake.feed(&buf[..count]).map(|taken| (taken, count));
    }
}

const fn socket_name(socket: SocketType) -> &'static str {
    match socket {
        SocketType::Router => "ROUTER",
        SocketType::Dealer => "DEALER",
        SocketType::Req => "REQ",
    }
}

fn describe(stream: Stream, leftover: Vec<u8>, own: SocketType, ready: &Ready) -> Result<Greeted, String> {
    let get = |name| ready.properties.get(name);
    let name = get(SOCKET_TYPE).unwrap_or_default();
    let all = [SocketType::Router, SocketType::Dealer, SocketType::Req];
    let socket = all.into_iter().find(|socket| socket_name(*socket).as_bytes() == name);
    let socket = match (own, socket) {
        (SocketType::Router, Some(socket)) => socket,
        (_, Some(SocketType::Router)) => SocketType::Router,
        _ => {
            return Err(format!(
                "a {} cannot talk to a {}",
                socket_name(own),
                name.escape_ascii()
            ));
        }
    };
    let identity = match get(IDENTITY) {
        None | Some([]) => None,
        Some(bytes) => Some(Rid::new(bytes).map_err(|error| error.to_string())?),
    };
    let ours = match get(GENERATION) {
        None => None,
        Some(token) => {
            let token = token
                .try_into()
                .ok()
                .map(u64::from_be_bytes)
                .and_then(Generation::from_wire);
            let generation = token.ok_or("malformed X-Generation")?;
            if identity.is_none() {
                return Err("a generation without an identity".to_owned());
            }
            Some(Ours {
                generation,
                part: part(get(LANE), get(LINK))?,
            })
        }
    };
    Ok(Greeted {
        stream,
        leftover,
        socket,
        identity,
        ours,
        pings: ready.minor >= 1,
    })
}

fn part(lane: Option<&[u8]>, link: Option<&[u8]>) -> Result<Option<(Part, Nonce)>, String> {
    let (Some(lane), Some(link)) = (lane, link) else {
        return if lane.is_none() && link.is_none() {
            Ok(None)
        } else {
            Err("half a lane".to_owned())
        };
    };
    let part = [Part::Whole, Part::Data, Part::Completion]
        .into_iter()
        .find(|part| part.name().as_bytes() == lane);
    match (part, link.try_into()) {
        (Some(part), Ok(nonce)) => Ok(Some((part, nonce))),
        _ => Err("malformed X-Lane or X-Link".to_owned()),
    }
}
