//! Peers that mean harm, or know no better: each is closed, and others are served on. They speak raw ZMTP.

use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;

use crate::permit::HostPermits;
use crate::transport::Endpoint;
use crate::transport::zmtp::{Handshake, Properties, Role, Security, frame_head};

use super::Rig;
use super::kit::*;
use super::process::{Child, raise_descriptors, resident};

pub(super) async fn two_thousand_half_open_handshakes(rig: Rig) {
    raise_descriptors();
    let server = Echo::bind(&rig, "tcp://127.0.0.1:0").await;
    let mut half = Vec::new();
    for n in 0..2000 {
        let mut stream = raw(server.endpoint()).await;
        let start = [0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 3, 1];
        stream.write_all(&start[..n % 13]).await.unwrap();
        half.push(stream);
    }
    let begin = Instant::now();
    server.client("honest").await.round_trips(100).await;
    assert!(
        begin.elapsed() < Duration::from_secs(20),
        "an honest peer waited {:?}",
        begin.elapsed()
    );
    for stream in &mut half {
        closed(stream).await;
    }
    server.client("later").await.round_trips(100).await;
}

pub(super) async fn declared_lengths_allocate_nothing(rig: Rig) {
    let server = Echo::bind(&rig, "tcp://127.0.0.1:0").await;
    let neighbour = server.client("neighbour").await;
    let before = resident();
    for power in [31u32, 40, 62, 63] {
        let length = (1u64 << power).to_be_bytes();
        for flags in [2u8, 3, 6] {
            // Before READY, after it, and as the length of a record.
            let mut early = raw(server.endpoint()).await;
            let mut greeting = Handshake::new(Role::Client, Security::Null, &Properties::new()).take_output();
            greeting.push(flags);
            greeting.extend(length);
            push(&mut early, &greeting).await;
            closed(&mut early).await;

            let mut late = greeted(server.endpoint(), Properties::new()).await;
            push(&mut late, &[&[flags][..], &length].concat()).await;
            closed(&mut late).await;
        }
    }
    for length in [0, 5, 1 << 20, (1 << 20) + 1, u32::MAX] {
        let mut late = greeted(server.endpoint(), Properties::new()).await;
        push(
            &mut late,
            &message(&[&u32::to_le_bytes(length)[..], b"\x01\x10ab"].concat()),
        )
        .await;
        closed(&mut late).await;
    }
    // A length that is allowed, of which little comes: what is held is what came.
    let mut slow = Vec::new();
    for _ in 0..300 {
        let mut stream = greeted(server.endpoint(), Properties::new()).await;
        let len = (1u32 << 20) - 6;
        let (head, from) = frame_head(len as usize + 4, false, false);
        push(&mut stream, &[&head[from..], &len.to_le_bytes(), b"\x01\x10"].concat()).await;
        slow.push(stream);
    }
    neighbour.round_trips(100).await;
    let grown = resident().saturating_sub(before);
    assert!(grown < 150 << 20, "memory grew by {grown} bytes");
}

pub(super) async fn endless_multipart_is_closed(rig: Rig) {
    let server = Echo::bind(&rig, "tcp://127.0.0.1:0").await;
    let neighbour = server.client("neighbour").await;
    for part in [&[1u8, 0][..], &[1, 7, 3, 0, 0, 0, 1, 16, 0]] {
        let mut stream = greeted(server.endpoint(), Properties::new()).await;
        for _ in 0..1000 {
            push(&mut stream, part).await;
        }
        closed(&mut stream).await;
    }
    neighbour.round_trips(100).await;
}

pub(super) async fn random_bytes_are_closed_and_nobody_else_suffers(rig: Rig) {
    let server = Echo::bind(&rig, "tcp://127.0.0.1:0").await;
    let neighbour = server.client("neighbour").await;
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let mut streams = Vec::new();
    for n in 0..300 {
        let noise: Vec<u8> = (0..random() % 5000 + 1).map(|_| random() as u8).collect();
        let mut stream = match n % 3 {
            0 => raw(server.endpoint()).await,
            1 => {
                let mut stream = raw(server.endpoint()).await;
                push(
                    &mut stream,
                    &Handshake::new(Role::Client, Security::Null, &Properties::new()).take_output(),
                )
                .await;
                stream
            }
            _ => {
                greeted(
                    server.endpoint(),
                    Properties::new().with("Identity", noise[..noise.len().min(200)].to_vec()),
                )
                .await
            }
        };
        push(&mut stream, &noise).await;
        stream.shutdown().await.unwrap_or(());
        streams.push(stream);
        if n % 50 == 0 {
            neighbour.round_trips(10).await;
        }
    }
    for stream in &mut streams {
        closed(stream).await;
    }
    neighbour.round_trips(100).await;
    assert_eq!(server.permits.in_use(), 0, "every permit came back");
}

/// The process has few descriptors: it neither ends nor spins, and serves again when some are free.
pub(super) async fn running_out_of_descriptors(rig: Rig) {
    let mut child = Child::start(&rig, "serve-with-64-descriptors", "-").await;
    let endpoint: Endpoint = child.line().await.parse().unwrap();
    let mut streams = Vec::new();
    // More than it has descriptors for, and few enough that the kernel accepts the rest for a listener of any backlog.
    for _ in 0..150 {
        streams.push(raw(&endpoint).await);
    }
    // It shall idle now.
    let spent = child.processor_time();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let spent = child.processor_time() - spent;
    // Who spins takes all that others leave; who tries again from time to time next to nothing.
    assert!(
        spent < Duration::from_millis(100),
        "it spins: {spent:?} of processor time in two seconds"
    );
    drop(streams);
    let permits = HostPermits::new(100);
    let deadline = Instant::now() + Duration::from_secs(10);
    let link = loop {
        match rig.transport().dial(&endpoint, offer("after", &permits)).await {
            Ok(link) => break link,
            Err(error) => assert!(Instant::now() < deadline, "not served again: {error}"),
        }
    };
    End::new(link, &permits, 1 << 20).round_trips(10).await;
    assert!(child.is_alive());
}
