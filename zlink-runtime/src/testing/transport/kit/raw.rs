//! Connections that speak raw bytes and frames.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::transport::Endpoint;
use crate::transport::zmtp::{Handshake, Properties, Role, Security, frame_head};

/// Connects.
pub async fn raw(endpoint: &Endpoint) -> TcpStream {
    TcpStream::connect((endpoint.host().unwrap(), endpoint.port().unwrap()))
        .await
        .unwrap()
}

/// A connection whose handshake is done, with these properties beyond the socket type.
pub async fn greeted(endpoint: &Endpoint, properties: Properties) -> TcpStream {
    let mut stream = raw(endpoint).await;
    let mut handshake = Handshake::new(
        Role::Client,
        Security::Null,
        &properties.with("Socket-Type", *b"DEALER"),
    );
    while handshake.take_ready().is_none() {
        stream.write_all(&handshake.take_output()).await.unwrap();
        let byte = stream.read_u8().await.unwrap();
        handshake.feed(&[byte]).unwrap();
    }
    stream
}

/// Waits until the peer has closed it, however it says so; nothing else may take longer.
pub async fn closed(stream: &mut TcpStream) {
    let end = async {
        let mut bytes = [0; 4096];
        while matches!(stream.read(&mut bytes).await, Ok(count) if count > 0) {}
    };
    tokio::time::timeout(Duration::from_secs(5), end)
        .await
        .expect("the hostile connection is closed in time");
}

/// Sends, as far as the peer takes it.
pub async fn push(stream: &mut TcpStream, bytes: &[u8]) {
    let _ = stream.write_all(bytes).await;
}

pub fn message(body: &[u8]) -> Vec<u8> {
    let (head, from) = frame_head(body.len(), false, false);
    [&head[from..], body].concat()
}
