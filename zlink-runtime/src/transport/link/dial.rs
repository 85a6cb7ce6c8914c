//! One attempt to connect: both lanes to the same address, each with its handshake.
//!
//! It must not try again; that is for the layer above.

use std::sync::Arc;

use tokio::time::{Instant, timeout_at};

use super::LinkTransport;
use super::greet::{Greeted, Nonce, Part, greet};
use super::shared::{Parts, open};
use super::stream::{Stream, reach};
use crate::limit::HANDSHAKE_TIME;
use crate::transport::zmtp::Role;
use crate::transport::{Endpoint, Lanes, Link, Offer, Peer, TransportError};

pub(super) async fn dial(
    transport: &LinkTransport,
    endpoint: &Endpoint,
    offer: Offer,
) -> Result<Arc<dyn Link>, TransportError> {
    let failed = |cause: String| TransportError::Handshake {
        endpoint: endpoint.to_string(),
        cause,
    };
    let connect = || reach(&*transport.sockets, endpoint);
    let mut nonce = Nonce::default();
    getrandom::fill(&mut nonce).map_err(|error| failed(error.to_string()))?;
    // Over a long way, whatever is done one after the other does not fit into the time there is.
    let (data, beside) = match offer.lanes {
        Lanes::Two if transport.sockets.is_one_place(endpoint) => {
            let (data, beside) = tokio::try_join!(connect(), connect())?;
            (data, Some(beside))
        }
        Lanes::One | Lanes::Two => (connect().await?, None),
    };
    let since = Instant::now();
    let handshake = async {
        let greeted = |stream: Stream, part| {
            greet(
                stream,
                Role::Client,
                &transport.config.security,
                &offer,
                Some((part, nonce)),
            )
        };
        match offer.lanes {
            Lanes::One => Ok(vec![greeted(data, Part::Whole).await?]),
            Lanes::Two => {
                let address = data.address;
                let beside = async {
                    let beside = match beside {
                        Some(beside) => Ok(beside),
                        None => transport.sockets.connect(endpoint, address).await,
                    };
                    greeted(beside.map_err(|error| error.to_string())?, Part::Completion).await
                };
                let (data, completion) = tokio::try_join!(greeted(data, Part::Data), beside)?;
                pair(data, completion)
            }
        }
    };
    let lanes = match timeout_at(since + HANDSHAKE_TIME, handshake).await {
        Ok(lanes) => lanes.map_err(failed)?,
        Err(_) => return Err(failed("it took longer than two seconds".to_owned())),
    };
    let [first, ..] = lanes.as_slice() else {
        return Err(failed("no lane".to_owned()));
    };
    let peer = Peer {
        identity: first.identity.clone(),
        generation: first.ours.as_ref().map(|ours| ours.generation),
        socket: first.socket,
        lanes: offer.lanes,
        dialled: true,
        address: first.stream.address,
    };
    Ok(open(
        Parts {
            id: transport.next_id(),
            peer,
            lanes,
            since,
            places: Vec::new(),
        },
        &offer,
    ))
}

/// The lanes of one link lead to one run of one peer, and that peer knows lanes.
fn pair(data: Greeted, completion: Greeted) -> Result<Vec<Greeted>, String> {
    if data.ours.is_none() {
        return Err("the peer is no zlink node, and a plain ZeroMQ peer has no second lane".to_owned());
    }
    if data.ours != completion.ours || data.identity != completion.identity {
        return Err("the lanes lead to two different peers".to_owned());
    }
    Ok(vec![data, completion])
}
