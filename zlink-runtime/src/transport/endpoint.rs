//! Endpoints: `tcp://host:port` and `ipc://path`, checked when they are made. It must not open one.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::limit::ENDPOINT_BYTES;

/// Where a listener is, or shall be.
///
/// `tcp://host:port`, where the host is an IPv4 address, an IPv6 address in brackets, a name, or `*` for every
/// interface, and port 0 asks for a free one; or `ipc://path`, a Unix socket. At most 4,096 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint {
    text: String,
    scheme: Scheme,
}

/// What an endpoint is reached by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Scheme {
    Tcp { port: u16 },
    Ipc,
}

/// Why a text is no endpoint, or not one for this use.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("endpoint {text:?}: {problem}")]
pub struct InvalidEndpoint {
    text: String,
    problem: &'static str,
}

crate::error::shown!(InvalidEndpoint);

const TCP: &str = "tcp://";
const IPC: &str = "ipc://";

impl Endpoint {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The host of a `tcp` endpoint, an IPv6 address without its brackets.
    #[must_use]
    pub fn host(&self) -> Option<&str> {
        let (host, _) = self.text.strip_prefix(TCP)?.rsplit_once(':')?;
        Some(host.trim_start_matches('[').trim_end_matches(']'))
    }

    /// The port of a `tcp` endpoint; 0 asks for a free one.
    #[must_use]
    pub const fn port(&self) -> Option<u16> {
        match self.scheme {
            Scheme::Tcp { port } => Some(port),
            Scheme::Ipc => None,
        }
    }

    /// The path of an `ipc` endpoint.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        self.text.strip_prefix(IPC)
    }

    /// The same with another port; an `ipc` endpoint stays as it is.
    #[must_use]
    pub fn with_port(&self, port: u16) -> Self {
        match self.text.rsplit_once(':') {
            Some((start, _)) if self.port().is_some() => Self {
                text: format!("{start}:{port}"),
                scheme: Scheme::Tcp { port },
            },
            _ => self.clone(),
        }
    }

    /// The same with another host, which may be an IPv6 address without brackets; an `ipc` endpoint stays as it is.
    ///
    /// # Errors
    /// Where `host` is none.
    pub fn with_host(&self, host: &str) -> Result<Self, InvalidEndpoint> {
        match self.scheme {
            Scheme::Tcp { .. } if host.matches(':').count() == 1 => Err(InvalidEndpoint {
                text: shown(host),
                problem: "give the host alone, without a port",
            }),
            Scheme::Tcp { port } if host.contains(':') && !host.starts_with('[') => {
                format!("{TCP}[{host}]:{port}").parse()
            }
            Scheme::Tcp { port } => format!("{TCP}{host}:{port}").parse(),
            Scheme::Ipc => Ok(self.clone()),
        }
    }

    /// Whether it stands for every interface, and so can be bound but not dialled: `*`, `0.0.0.0` or `[::]`.
    #[must_use]
    pub fn is_wildcard(&self) -> bool {
        let unspecified = |host: &str| {
            host == "*"
                || host.parse::<Ipv4Addr>().is_ok_and(|ip| ip.is_unspecified())
                || host.parse::<Ipv6Addr>().is_ok_and(|ip| ip.is_unspecified())
        };
        self.host().is_some_and(unspecified)
    }

    /// Reads the endpoint of a peer: one that a socket of this system can have, and that can be dialled.
    pub(crate) fn of_peer(text: &str) -> Result<Self, InvalidEndpoint> {
        let endpoint: Self = text.parse()?;
        endpoint.check_usable()?;
        endpoint.check_dialable()?;
        Ok(endpoint)
    }

    /// Checks that a socket of this system can have it: a Unix path has far less room than an endpoint.
    pub(crate) fn check_usable(&self) -> Result<(), InvalidEndpoint> {
        match self.path().map(std::os::unix::net::SocketAddr::from_pathname) {
            Some(Err(_)) => Err(InvalidEndpoint {
                text: shown(&self.text),
                problem: "the path is longer than a Unix socket can have, which is about 100 bytes",
            }),
            _ => Ok(()),
        }
    }

    /// Checks that others can dial it: an advertised endpoint, a descriptor's, or a manual peer's.
    ///
    /// # Errors
    /// Where it is a wildcard, or its port is 0.
    pub fn check_dialable(&self) -> Result<(), InvalidEndpoint> {
        let problem = if self.is_wildcard() {
            "a wildcard can only be bound; name the host that others reach"
        } else if self.port() == Some(0) {
            "port 0 can only be bound; name the port that others reach"
        } else {
            return Ok(());
        };
        Err(InvalidEndpoint {
            text: self.text.clone(),
            problem,
        })
    }
}

/// As much of a text as a message shows.
fn shown(text: &str) -> String {
    text.chars().take(100).collect()
}

/// The problem of a host, if it has one.
fn host_problem(host: &str) -> Option<&'static str> {
    if let Some(inner) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return inner
            .parse::<Ipv6Addr>()
            .is_err()
            .then_some("what is in the brackets is no IPv6 address");
    }
    if host == "*" {
        return None;
    }
    if host.is_empty() {
        return Some("the host is missing; write tcp://host:port");
    }
    if host.contains(':') {
        return Some("put an IPv6 address in brackets: tcp://[::1]:5555");
    }
    if host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return host
            .parse::<Ipv4Addr>()
            .is_err()
            .then_some("the host is no IPv4 address");
    }
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let name = host.strip_suffix('.').unwrap_or(host);
    let legal = name.len() <= 253 && name.split('.').all(label);
    (!legal).then_some("the host is no address and no host name")
}

fn parse(text: &str) -> Result<Scheme, &'static str> {
    if text.len() > ENDPOINT_BYTES {
        return Err("is longer than 4096 bytes");
    }
    if text.contains('\0') {
        return Err("contains a NUL character");
    }
    if let Some(path) = text.strip_prefix(IPC) {
        return if path.is_empty() {
            Err("the path is missing; write ipc://path")
        } else {
            Ok(Scheme::Ipc)
        };
    }
    let rest = text.strip_prefix(TCP).ok_or("write tcp://host:port or ipc://path")?;
    let (host, port) = rest
        .rsplit_once(':')
        .ok_or("the port is missing; write tcp://host:port")?;
    if let Some(problem) = host_problem(host) {
        return Err(problem);
    }
    let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    match port.parse() {
        Ok(port) if digits => Ok(Scheme::Tcp { port }),
        _ => Err("the port is no number from 0 to 65535"),
    }
}

impl std::str::FromStr for Endpoint {
    type Err = InvalidEndpoint;
    fn from_str(text: &str) -> Result<Self, InvalidEndpoint> {
        match parse(text) {
            Ok(scheme) => Ok(Self {
                text: text.to_owned(),
                scheme,
            }),
            Err(problem) => Err(InvalidEndpoint {
                text: shown(text),
                problem,
            }),
        }
    }
}

impl TryFrom<&str> for Endpoint {
    type Error = InvalidEndpoint;
    fn try_from(text: &str) -> Result<Self, InvalidEndpoint> {
        text.parse()
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn endpoint(text: &str) -> Endpoint {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_an_endpoint() {
        for good in [
            "tcp://127.0.0.1:5555",
            "tcp://[::1]:0",
            "tcp://*:0",
            "tcp://host-1.example_x.org:65535",
            "tcp://localhost.:1",
            "ipc:///tmp/a b",
            "ipc://relative",
        ] {
            assert_eq!(endpoint(good).as_str(), good);
        }
        for bad in [
            "",
            "127.0.0.1:5555",
            "tcp://",
            "tcp://:1",
            "tcp://host",
            "tcp://host:",
            "tcp://host:+1",
            "tcp://host:65536",
            "tcp://1.2.3:4",
            "tcp://256.0.0.1:4",
            "tcp://::1:4",
            "tcp://[::g]:4",
            "tcp://a..b:4",
            "tcp://-a:4",
            "tcp://a b:4",
            "tcp://a/b:4",
            "tcp://**:4",
            "ipc://",
            "ipc://a\0b",
            "inproc://x",
            "udp://127.0.0.1:1",
        ] {
            assert!(bad.parse::<Endpoint>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_length_is_bounded() {
        let path = |len: usize| format!("ipc://{}", "x".repeat(len - 6)).parse::<Endpoint>();
        assert!(path(4096).is_ok());
        let refused = path(4097).unwrap_err().to_string();
        assert!(refused.contains("4096") && refused.len() < 200, "{refused}");
    }

    #[test]
    fn parts() {
        let tcp = endpoint("tcp://[::1]:7");
        assert_eq!((tcp.host(), tcp.port(), tcp.path()), (Some("::1"), Some(7), None));
        assert_eq!(tcp.with_port(9).as_str(), "tcp://[::1]:9");
        assert_eq!(tcp.with_port(9).port(), Some(9));
        assert_eq!(
            endpoint("tcp://*:7").with_host("fe80::1").unwrap().as_str(),
            "tcp://[fe80::1]:7"
        );
        assert_eq!(
            endpoint("tcp://*:7").with_host("host").unwrap().as_str(),
            "tcp://host:7"
        );
        assert!(endpoint("tcp://*:7").with_host("a b").is_err());
        let refused = endpoint("tcp://*:7").with_host("host:7001").unwrap_err().to_string();
        assert_eq!(refused, "endpoint \"host:7001\": give the host alone, without a port");
        let ipc = endpoint("ipc:///tmp/x:1");
        assert_eq!((ipc.host(), ipc.port(), ipc.path()), (None, None, Some("/tmp/x:1")));
        assert_eq!(ipc.with_port(9), ipc);
    }

    #[test]
    fn only_what_can_be_dialled_is_advertised() {
        for bound in [
            "tcp://*:1",
            "tcp://0.0.0.0:1",
            "tcp://[::]:1",
            "tcp://[0:0::0]:1",
            "tcp://host:0",
        ] {
            assert!(endpoint(bound).check_dialable().is_err(), "{bound}");
        }
        for dialled in ["tcp://host:1", "tcp://0.0.0.1:1", "ipc://x"] {
            assert_eq!(endpoint(dialled).check_dialable(), Ok(()));
        }
    }

    #[test]
    fn a_path_that_is_too_long_can_be_read_and_not_used() {
        assert_eq!(endpoint("ipc:///tmp/a.sock").check_usable(), Ok(()));
        let long = endpoint(&format!("ipc:///tmp/{}", "x".repeat(200)));
        assert!(long.check_usable().is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(tcp://|ipc://)?[\\PC\\[\\]:.*0-9]{0,40}") {
            if let Ok(endpoint) = text.parse::<Endpoint>() {
                prop_assert_eq!(endpoint.as_str(), &text);
                prop_assert_eq!(endpoint.host().is_some(), endpoint.port().is_some());
                let other = endpoint.with_port(7);
                prop_assert_eq!(other.host(), endpoint.host());
            }
        }
    }
}
