//! Futures that are dropped at each of their waits: what they held comes back, and nobody else notices.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::permit::HostPermits;
use crate::transport::{CloseReason, Lane, Lanes, Offer, SocketType};

use super::Rig;
use super::kit::*;

/// A future that is given up at its `left`th poll.
struct UpTo<F> {
    left: usize,
    future: F,
}

impl<F: Future + Unpin> Future for UpTo<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        self.left -= 1;
        Pin::new(&mut self.future).poll(cx).map(Some)
    }
}

pub(super) async fn dialling_and_binding(rig: Rig) {
    let server = Echo::bind(&rig, "tcp://127.0.0.1:0").await;
    for lanes in [Lanes::One, Lanes::Two] {
        let socket = if lanes == Lanes::One {
            SocketType::Dealer
        } else {
            SocketType::Router
        };
        let mut polls = 0;
        loop {
            let offer = Offer {
                lanes,
                socket,
                ..offer("client", &server.permits)
            };
            let dial = UpTo {
                left: polls,
                future: rig.transport().dial(server.endpoint(), offer),
            };
            if let Some(link) = dial.await {
                End::new(link.unwrap(), &server.permits, 1 << 20).round_trips(10).await;
                break;
            }
            polls += 1;
        }
        assert!(polls >= 2, "it was cancelled {polls} times only");
    }
    let endpoint = server.endpoint().with_port(0);
    for polls in 0.. {
        let bind = rig
            .transport()
            .bind(&endpoint, offer("x", &server.permits), server.acceptor());
        if (UpTo {
            left: polls,
            future: bind,
        })
        .await
        .is_some()
        {
            break;
        }
    }
    server.client("after").await.round_trips(10).await;
}

/// A cancelled send never arrives, a finished one arrives once, and room comes back.
pub(super) async fn sending(rig: Rig) {
    for keep in [0, 1, 2, 3] {
        let (client, server, _bound) = linked(&rig, "tcp://127.0.0.1:0", |offer| offer.budget = 50_000).await;
        let (mut sent, mut cancelled) = (Vec::new(), 0);
        let mut waiting = Vec::new();
        for n in 0..400 {
            let mut send = client.link.send(Lane::Data, record(ORDINARY, n, 7000));
            match futures_poll(&mut send) {
                Poll::Ready(result) => {
                    result.unwrap();
                    sent.push(n);
                }
                Poll::Pending => waiting.push((n, send)),
            }
            // Some are dropped in line, some when their room was granted already, some are finished.
            if waiting.len() == 8 {
                let at = n as usize % 8;
                drop(waiting.remove(at));
                cancelled += 1;
                if n % 5 == keep {
                    tokio::task::yield_now().await;
                }
                let mut left = Vec::new();
                for (n, mut send) in waiting.drain(..) {
                    match futures_poll(&mut send) {
                        Poll::Ready(result) => {
                            result.unwrap();
                            sent.push(n);
                        }
                        Poll::Pending => left.push((n, send)),
                    }
                }
                waiting = left;
            }
        }
        cancelled += waiting.len();
        drop(waiting);
        assert!(cancelled > 8, "{cancelled} sends were cancelled");
        until("what was sent", || server.heard.len() == sent.len()).await;
        assert_eq!(server.heard.numbers(Lane::Data), sent);
        let stats = client.link.stats();
        assert_eq!((stats.queued_bytes, stats.waiting_senders), (0, 0));
        client.link.send(Lane::Data, record(ORDINARY, 9, 49_000)).await.unwrap();
    }
}

pub(super) async fn receiving(rig: Rig) {
    for n in 0..200u32 {
        let permits = HostPermits::new(3);
        let mut server = Server::bind(&rig, "tcp://127.0.0.1:0", offer("server", &permits)).await;
        let link = rig
            .transport()
            .dial(server.endpoint(), offer("client", &permits))
            .await
            .unwrap();
        let client = End::new(link, &HostPermits::new(9), 1000);
        let accepted = End::new(server.accept().await, &permits, 1000);
        let sends = tokio::spawn({
            let link = client.link.clone();
            async move {
                for n in 0..50 {
                    if link.send(Lane::Data, record(ORDINARY, n, 500)).await.is_err() {
                        break;
                    }
                }
            }
        });
        // Closed in whatever its reader does just then: reading, waiting for a permit, or being granted one.
        for _ in 0..n % 40 {
            accepted.heard.release();
            tokio::task::yield_now().await;
        }
        let linger = if n % 2 == 0 {
            Duration::ZERO
        } else {
            Duration::from_secs(5)
        };
        accepted.link.close(CloseReason::Local("enough"), linger);
        until("both ends", || {
            accepted.heard.reason().is_some() && client.heard.reason().is_some()
        })
        .await;
        sends.await.unwrap();
        accepted.heard.release();
        assert_eq!(permits.in_use(), 0);
        let after = accepted.heard.len();
        tokio::task::yield_now().await;
        assert_eq!(
            accepted.heard.with(|heard| (heard.records.len(), heard.closed.len())),
            (after, 1)
        );
    }
}
