//! The byte streams under a link: TCP and Unix sockets, and the seam for any other.
//!
//! It must not know ZMTP, lanes or records.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream, tcp, unix};
use tokio::time::timeout;

use crate::limit::HANDSHAKE_TIME;
use crate::transport::{BoxFuture, Endpoint, TransportError};

/// How often, and after which pauses, the lock of a folder is tried: who binds there holds it for a moment.
const LOCK_ATTEMPTS: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// The receiving half of a stream.
pub(in crate::transport) trait ReadHalf: AsyncRead + Send + Sync + Unpin {
    /// Waits until a read would not wait, without reading.
    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Waits until the peer has ended or broken the stream, whether or not all it sent was read; tells whether
    /// anything is left to read. Where a system cannot tell, it waits for ever.
    fn ended(&self) -> BoxFuture<'_, bool>;
}

/// The sending half of a stream. Dropping it tells the peer that nothing follows.
pub(in crate::transport) trait WriteHalf: AsyncWrite + Send + Unpin {}
impl<W: AsyncWrite + Send + Unpin> WriteHalf for W {}

macro_rules! read_half {
    ($half:ty) => {
        impl ReadHalf for $half {
            fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.as_ref().poll_read_ready(cx)
            }

            fn ended(&self) -> BoxFuture<'_, bool> {
                Box::pin(async {
                    // Of all interests only this one is met by the end of the stream and not by unread bytes.
                    #[cfg(any(target_os = "linux", target_os = "android"))]
                    let _ = self.as_ref().ready(tokio::io::Interest::PRIORITY).await;
                    #[cfg(not(any(target_os = "linux", target_os = "android")))]
                    std::future::pending::<()>().await;
                    let mut byte = [std::mem::MaybeUninit::uninit()];
                    matches!(socket2::SockRef::from(self.as_ref()).peek(&mut byte), Ok(1..))
                })
            }
        }
    };
}
read_half!(tcp::OwnedReadHalf);
read_half!(unix::OwnedReadHalf);

/// A connected stream.
pub(in crate::transport) struct Stream {
    pub(in crate::transport) read: Box<dyn ReadHalf>,
    pub(in crate::transport) write: Box<dyn WriteHalf>,
    pub(in crate::transport) address: Option<SocketAddr>,
}

impl From<TcpStream> for Stream {
    fn from(stream: TcpStream) -> Self {
        // A link joins what waits by itself; a socket that cannot be told so still works.
        let _ = stream.set_nodelay(true);
        let address = stream.peer_addr().ok();
        let (read, write) = stream.into_split();
        Self {
            read: Box::new(read),
            write: Box::new(write),
            address,
        }
    }
}

impl From<UnixStream> for Stream {
    fn from(stream: UnixStream) -> Self {
        let (read, write) = stream.into_split();
        Self {
            read: Box::new(read),
            write: Box::new(write),
            address: None,
        }
    }
}

/// Where streams come from.
pub(in crate::transport) trait Sockets: fmt::Debug + Send + Sync + 'static {
    /// Connects once; where another connection leads, if `beside` tells.
    fn connect<'a>(&'a self, endpoint: &'a Endpoint, beside: Option<SocketAddr>) -> BoxFuture<'a, io::Result<Stream>>;

    /// Whether all connections to that endpoint lead to one place, whatever `beside` says. A name may have several.
    fn is_one_place(&self, endpoint: &Endpoint) -> bool;

    /// Binds, and tells where.
    fn bind<'a>(&'a self, endpoint: &'a Endpoint) -> BoxFuture<'a, io::Result<(Box<dyn Socket>, Endpoint)>>;
}

/// Connects, where that can be and takes no longer than a handshake may.
///
/// # Errors
/// [`TransportError::Dial`].
pub(in crate::transport) async fn reach(sockets: &dyn Sockets, endpoint: &Endpoint) -> Result<Stream, TransportError> {
    let unreachable = |cause: String| TransportError::Dial {
        endpoint: endpoint.to_string(),
        cause,
    };
    let dialable = endpoint.check_dialable();
    dialable.map_err(|error| unreachable(error.to_string()))?;
    match timeout(HANDSHAKE_TIME, sockets.connect(endpoint, None)).await {
        Ok(connected) => connected.map_err(|error| unreachable(error.to_string())),
        Err(_) => Err(unreachable("it did not answer within two seconds".to_owned())),
    }
}

/// A bound socket. Dropping it unbinds.
pub(in crate::transport) trait Socket: Send + Sync {
    /// Takes the next connection.
    fn accept(&self) -> BoxFuture<'_, io::Result<Stream>>;
}

/// The system's sockets.
#[derive(Debug)]
pub(super) struct System;

impl Sockets for System {
    fn is_one_place(&self, endpoint: &Endpoint) -> bool {
        let host = endpoint.host().map(|host| host.trim_matches(['[', ']']));
        endpoint.path().is_some() || host.is_some_and(|host| host.parse::<IpAddr>().is_ok())
    }

    fn connect<'a>(&'a self, endpoint: &'a Endpoint, beside: Option<SocketAddr>) -> BoxFuture<'a, io::Result<Stream>> {
        Box::pin(async move {
            if let Some(address) = beside {
                return Ok(TcpStream::connect(address).await?.into());
            }
            if let Some(path) = endpoint.path() {
                return Ok(UnixStream::connect(path).await?.into());
            }
            let (host, port) = tcp_parts(endpoint)?;
            Ok(TcpStream::connect((host, port)).await?.into())
        })
    }

    fn bind<'a>(&'a self, endpoint: &'a Endpoint) -> BoxFuture<'a, io::Result<(Box<dyn Socket>, Endpoint)>> {
        Box::pin(async move {
            if let Some(path) = endpoint.path() {
                // A file is there before anybody listens on it: who cannot connect must not take that for a stale one.
                let lock = lock_folder(path).await;
                // A socket file that nobody listens on is replaced.
                let listener = match UnixListener::bind(path) {
                    Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_stale(path).await => {
                        std::fs::remove_file(path)?;
                        UnixListener::bind(path)?
                    }
                    bound => bound?,
                };
                drop(lock);
                let file = SocketFile {
                    path: path.to_owned(),
                    file: which_file(path),
                };
                let socket: Box<dyn Socket> = Box::new(UnixSocket { file, listener });
                return Ok((socket, endpoint.clone()));
            }
            let (host, port) = tcp_parts(endpoint)?;
            let listener = match host {
                "*" => bind_every_interface(port)?,
                host => TcpListener::bind((host, port)).await?,
            };
            let port = listener.local_addr()?.port();
            Ok((Box::new(listener) as Box<dyn Socket>, endpoint.with_port(port)))
        })
    }
}

fn tcp_parts(endpoint: &Endpoint) -> io::Result<(&str, u16)> {
    endpoint
        .host()
        .zip(endpoint.port())
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))
}

/// A Unix socket and its file, which goes first: the number of a file may be given to another only once the socket
/// is closed.
struct UnixSocket {
    #[allow(dead_code, reason = "it is only dropped")]
    file: SocketFile,
    listener: UnixListener,
}

/// A Unix socket's file, removed with its listener, unless another has taken its place.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: String,
    /// Device and number.
    file: Option<(u64, u64)>,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.file.is_some() && which_file(&self.path) == self.file {
            // Where it cannot be removed, the next who listens there replaces it.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Which file is under that path now.
fn which_file(path: &str) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let file = std::fs::symlink_metadata(path).ok()?;
    Some((file.dev(), file.ino()))
}

impl Socket for TcpListener {
    fn accept(&self) -> BoxFuture<'_, io::Result<Stream>> {
        Box::pin(async { Ok(TcpListener::accept(self).await?.0.into()) })
    }
}

impl Socket for UnixSocket {
    fn accept(&self) -> BoxFuture<'_, io::Result<Stream>> {
        Box::pin(async { Ok(self.listener.accept().await?.0.into()) })
    }
}

/// Locks the folder of that path against others that bind there, until the file is dropped. `None` where that cannot be
/// done, or somebody holds it for no good reason: then it must do without.
async fn lock_folder(path: &str) -> Option<std::fs::File> {
    let folder = std::path::Path::new(path).parent()?;
    let folder = if folder.as_os_str().is_empty() {
        ".".as_ref()
    } else {
        folder
    };
    let folder = std::fs::File::open(folder).ok()?;
    for _ in 0..LOCK_ATTEMPTS {
        match folder.try_lock() {
            Ok(()) => return Some(folder),
            Err(std::fs::TryLockError::WouldBlock) => tokio::time::sleep(LOCK_PAUSE).await,
            Err(std::fs::TryLockError::Error(_)) => return None,
        }
    }
    None
}

/// Whether the file is a socket that refuses connections.
async fn is_stale(path: &str) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket())
        && UnixStream::connect(path)
            .await
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// IPv6 and IPv4 where the system has both, else IPv4.
fn bind_every_interface(port: u16) -> io::Result<TcpListener> {
    use socket2::{Domain, Protocol, Socket, Type};
    let bind = |domain: Domain, address: SocketAddr| {
        let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        if domain == Domain::IPV6 {
            socket.set_only_v6(false)?;
        }
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(1024)?;
        TcpListener::from_std(socket.into())
    };
    match bind(Domain::IPV6, (std::net::Ipv6Addr::UNSPECIFIED, port).into()) {
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
            bind(Domain::IPV4, (std::net::Ipv4Addr::UNSPECIFIED, port).into())
        }
        bound => bound,
    }
}
