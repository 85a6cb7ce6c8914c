//! tarpc with its bincode transport over one TCP connection.

use futures::StreamExt;
use tarpc::server::{BaseChannel, Channel};
use tarpc::tokio_serde::formats::Bincode;
use tarpc::{client, context};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::codec::LengthDelimitedCodec;

use super::{Caller, Peer};
use crate::Failure;

#[tarpc::service]
trait Echo {
    async fn call(data: Vec<u8>) -> Vec<u8>;
}

#[derive(Clone)]
struct Service;

impl Echo for Service {
    async fn call(self, _: context::Context, data: Vec<u8>) -> Vec<u8> {
        data
    }
}

async fn answer(stream: TcpStream) -> Result<(), Failure> {
    stream.set_nodelay(true)?;
    let transport = tarpc::serde_transport::new(LengthDelimitedCodec::builder().new_framed(stream), Bincode::default());
    let mut requests = Box::pin(BaseChannel::with_defaults(transport).execute(Service.serve()));
    while let Some(request) = requests.next().await {
        tokio::spawn(request);
    }
    Ok(())
}

pub struct Rpc;

impl Peer for Rpc {
    const NAME: &'static str = "tarpc";
    type Caller = RpcCaller;

    async fn serve(tell: impl FnOnce(String) + Send) -> Result<(), Failure> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        tell(listener.local_addr()?.to_string());
        loop {
            tokio::spawn(answer(listener.accept().await?.0));
        }
    }

    async fn connect(address: &str) -> Result<RpcCaller, Failure> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let framed = LengthDelimitedCodec::builder().new_framed(stream);
        let transport = tarpc::serde_transport::new(framed, Bincode::default());
        // Its default of 1,000 requests in flight is below what is measured.
        let mut config = client::Config::default();
        (config.max_in_flight_requests, config.pending_request_buffer) = (4096, 4096);
        Ok(RpcCaller(EchoClient::new(config, transport).spawn()))
    }
}

#[derive(Clone)]
pub struct RpcCaller(EchoClient);

impl Caller for RpcCaller {
    async fn call(&mut self, payload: &'static [u8]) -> Result<usize, Failure> {
        Ok(self.0.call(context::current(), payload.to_vec()).await?.len())
    }
}
