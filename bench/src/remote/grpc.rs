//! gRPC: tonic and prost over one HTTP/2 connection.

use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status};

use super::{Caller, Peer};
use crate::Failure;

mod stub {
    #![allow(clippy::all)]
    tonic::include_proto!("echo.Echo");
}

use stub::echo_client::EchoClient;
use stub::echo_server::{Echo, EchoServer};

#[derive(Clone, PartialEq, prost::Message)]
pub struct Blob {
    #[prost(bytes = "vec", tag = "1")]
    pub data: Vec<u8>,
}

struct Service;

#[tonic::async_trait]
impl Echo for Service {
    async fn call(&self, request: Request<Blob>) -> Result<Response<Blob>, Status> {
        Ok(Response::new(request.into_inner()))
    }
}

pub struct Grpc;

impl Peer for Grpc {
    const NAME: &'static str = "tonic + prost";
    type Caller = GrpcCaller;

    async fn serve(tell: impl FnOnce(String) + Send) -> Result<(), Failure> {
        let incoming = TcpIncoming::bind("127.0.0.1:0".parse()?)?.with_nodelay(Some(true));
        tell(incoming.local_addr()?.to_string());
        let server = Server::builder().add_service(EchoServer::new(Service));
        Ok(server.serve_with_incoming(incoming).await?)
    }

    async fn connect(address: &str) -> Result<GrpcCaller, Failure> {
        let endpoint = Endpoint::from_shared(format!("http://{address}"))?.tcp_nodelay(true);
        Ok(GrpcCaller(EchoClient::new(endpoint.connect().await?)))
    }
}

#[derive(Clone)]
pub struct GrpcCaller(EchoClient<Channel>);

impl Caller for GrpcCaller {
    async fn call(&mut self, payload: &'static [u8]) -> Result<usize, Failure> {
        let reply = self.0.call(Blob { data: payload.to_vec() }).await?;
        Ok(reply.into_inner().data.len())
    }
}
