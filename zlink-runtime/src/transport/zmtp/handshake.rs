//! The handshake of one connection: greetings, then NULL or PLAIN, until both sides' properties are known.
//!
//! It must not know what a property means to the layer above, nor how bytes travel.

use super::ZmtpError;
use super::command::{Command, put_command, put_short, short};
use super::frame::{Decoder, FrameLimits, Head};
use super::greeting::{self, GREETING};

/// The most bytes of a user name, and of a password.
const MOST_BYTES: usize = 255;

/// How a connection proves who may use it.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Security {
    /// Everyone may.
    #[default]
    Null,
    /// A user name and a password, in clear: for links that something else protects.
    Plain {
        /// At most 255 bytes.
        username: String,
        /// At most 255 bytes.
        password: String,
    },
}

impl Security {
    /// Checks that a handshake can carry it.
    ///
    /// # Errors
    /// Where a part of it is too long; the text says which.
    pub(in crate::transport) fn check(&self) -> Result<(), String> {
        let Security::Plain { username, password } = self else {
            return Ok(());
        };
        let long = [("user name", username), ("password", password)];
        match long.iter().find(|(_, text)| text.len() > MOST_BYTES) {
            Some((what, text)) => Err(format!(
                "the {what} has {} bytes; at most {MOST_BYTES} are allowed",
                text.len()
            )),
            None => Ok(()),
        }
    }

    fn mechanism(&self) -> &'static str {
        match self {
            Security::Null => "NULL",
            Security::Plain { .. } => "PLAIN",
        }
    }
}

impl std::fmt::Debug for Security {
    /// Without the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.mechanism())
    }
}

/// Which end of the connection this is; PLAIN is not symmetric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It dialled.
    Client,
    /// It accepted.
    Server,
}

/// The named values of a READY command. Names are compared without case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties(Vec<(String, Vec<u8>)>);

impl Properties {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Vec<u8>>) -> Self {
        self.0.push((name.to_owned(), value.into()));
        self
    }

    /// The value of that name, if it is there.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.0
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_slice())
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (name, value) in &self.0 {
            put_short(&mut out, name.as_bytes());
            out.extend_from_slice(&u32::try_from(value.len()).unwrap_or(0).to_be_bytes());
            out.extend_from_slice(value);
        }
        out
    }

    /// The input is a command's body, so it holds at most 4 KiB; nothing is allocated beyond what it holds.
    fn decode(mut data: &[u8]) -> Result<Self, ZmtpError> {
        const MALFORMED: ZmtpError = ZmtpError::Malformed("READY");
        let mut all = Self::default();
        while !data.is_empty() {
            let (name, rest) = short(data).ok_or(MALFORMED)?;
            let name = std::str::from_utf8(name)
                .ok()
                .filter(|name| !name.is_empty() && name.is_ascii());
            let (len, rest) = rest.split_first_chunk().ok_or(MALFORMED)?;
            let len = usize::try_from(u32::from_be_bytes(*len)).map_err(|_| MALFORMED)?;
            let (value, rest) = rest.split_at_checked(len).ok_or(MALFORMED)?;
            all = all.with(name.ok_or(MALFORMED)?, value);
            data = rest;
        }
        Ok(all)
    }
}

/// What the peer told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Its properties.
    pub properties: Properties,
    /// Its minor version of ZMTP 3; PING exists from 1 on.
    pub minor: u8,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    Greeting,
    Hello,
    Welcome,
    Initiate,
    Ready,
}

/// A handshake in progress: feed it what arrives, send what it puts out, until it is done.
#[derive(Debug)]
pub struct Handshake {
    role: Role,
    security: Security,
    properties: Vec<u8>,
    state: State,
    minor: u8,
    held: Vec<u8>,
    output: Vec<u8>,
    ready: Option<Ready>,
}

impl Handshake {
    /// The start. The greeting is in [`Handshake::take_output`] at once.
    #[must_use]
    pub fn new(role: Role, security: Security, properties: &Properties) -> Self {
        let output = greeting::encode(security.mechanism(), role == Role::Server).to_vec();
        let properties = properties.encode();
        let (state, minor, held) = (State::Greeting, 0, Vec::new());
        Self {
            role,
            security,
            properties,
            state,
            minor,
            held,
            output,
            ready: None,
        }
    }

    /// What must be sent now; also after an error, where it tells the peer why.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// What the peer told, once the handshake is done.
    pub fn take_ready(&mut self) -> Option<Ready> {
        self.ready.take()
    }

    /// Takes bytes that arrived, and returns how many belong to the handshake: all, until it is done.
    ///
    /// # Errors
    /// Where the peer breaks the protocol or is refused. The connection is then of no use.
    pub fn feed(&mut self, input: &[u8]) -> Result<usize, ZmtpError> {
        let held = self.held.len();
        self.held.extend_from_slice(input);
        let mut at = 0;
        while self.ready.is_none() {
            let step = self.step(at)?;
            if step == 0 {
                break;
            }
            at += step;
        }
        if self.ready.is_some() {
            self.held.clear();
            return Ok(at - held.min(at));
        }
        self.held.drain(..at);
        Ok(input.len())
    }

    /// One greeting or command at `at`; how many bytes it took.
    fn step(&mut self, at: usize) -> Result<usize, ZmtpError> {
        let input = &self.held[at..];
        if self.state == State::Greeting {
            let Some(start) = input.first_chunk::<GREETING>() else {
                return greeting::check_start(input).map(|()| 0);
            };
            self.minor = greeting::decode(start, self.security.mechanism())?;
            self.greeted();
            return Ok(GREETING);
        }
        let (head, len) = match Decoder::new().head(input, FrameLimits::new(0))? {
            None => return Ok(0),
            Some((_, Head::Frame { .. })) => return Err(ZmtpError::Unexpected("message before READY")),
            Some((head, Head::Command { len })) => (head, len),
        };
        let Some(body) = input.get(head..head + len) else {
            return Ok(0);
        };
        let body = body.to_vec();
        self.command(Command::decode(&body)?)?;
        Ok(head + len)
    }

    fn greeted(&mut self) {
        self.state = match (&self.security, self.role) {
            (Security::Null, _) => {
                put_command(&mut self.output, "READY", &self.properties);
                State::Ready
            }
            (Security::Plain { .. }, Role::Server) => State::Hello,
            (Security::Plain { username, password }, Role::Client) => {
                let mut hello = Vec::new();
                put_short(&mut hello, username.as_bytes());
                put_short(&mut hello, password.as_bytes());
                put_command(&mut self.output, "HELLO", &hello);
                State::Welcome
            }
        };
    }

    fn command(&mut self, command: Command<'_>) -> Result<(), ZmtpError> {
        match (&self.state, command) {
            (_, Command::Error(reason)) => return Err(ZmtpError::Refused(reason.escape_ascii().to_string())),
            (State::Hello, Command::Hello { username, password }) => {
                if !self.accepts(username, password) {
                    put_command(&mut self.output, "ERROR", b"\x13invalid credentials");
                    return Err(ZmtpError::Credentials);
                }
                put_command(&mut self.output, "WELCOME", b"");
                self.state = State::Initiate;
            }
            (State::Welcome, Command::Welcome) => {
                put_command(&mut self.output, "INITIATE", &self.properties);
                self.state = State::Ready;
            }
            (State::Initiate, Command::Initiate(data)) => {
                let properties = Properties::decode(data)?;
                put_command(&mut self.output, "READY", &self.properties);
                self.ready = Some(Ready {
                    properties,
                    minor: self.minor,
                });
            }
            (State::Ready, Command::Ready(data)) => {
                self.ready = Some(Ready {
                    properties: Properties::decode(data)?,
                    minor: self.minor,
                });
            }
            _ => return Err(ZmtpError::Unexpected("command in the handshake")),
        }
        Ok(())
    }

    fn accepts(&self, username: &[u8], password: &[u8]) -> bool {
        let Security::Plain {
            username: user,
            password: pass,
        } = &self.security
        else {
            return false;
        };
        same(user.as_bytes(), username) & same(pass.as_bytes(), password)
    }
}

/// Equality whose duration tells nothing about where two secrets differ.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(password: &str) -> Security {
        Security::Plain {
            username: "node".into(),
            password: password.into(),
        }
    }

    /// Runs both ends against each other, `chunk` bytes at a time.
    fn run(client: Security, server: Security, chunk: usize) -> Result<(Ready, Ready, usize), ZmtpError> {
        let mut ends = [
            Handshake::new(
                Role::Client,
                client,
                &Properties::new().with("Socket-Type", *b"DEALER").with("X-Lane", [1]),
            ),
            Handshake::new(Role::Server, server, &Properties::new().with("Socket-Type", *b"ROUTER")),
        ];
        let mut ready = [None, None];
        let mut left = 0;
        let mut failed = None;
        for turn in 0..40 {
            let (from, to) = (turn % 2, (turn + 1) % 2);
            let output = ends[from].take_output();
            if let Some(error) = failed {
                return Err(ends[to].feed(&output).err().unwrap_or(error));
            }
            for piece in output.chunks(chunk) {
                if ready[to].is_some() {
                    left += piece.len();
                    continue;
                }
                match ends[to].feed(piece) {
                    Ok(taken) => left += piece.len() - taken,
                    Err(error) => failed = Some(error),
                }
                ready[to] = ends[to].take_ready();
            }
        }
        let [Some(server), Some(client)] = [ready[1].take(), ready[0].take()] else {
            panic!("not done")
        };
        Ok((server, client, left))
    }

    #[test]
    fn null_and_plain_tell_each_other_their_properties() {
        for security in [Security::Null, plain("secret")] {
            for chunk in [1, 2, 7, 63, 64, 65, 4096] {
                let (seen_by_server, seen_by_client, _) = run(security.clone(), security.clone(), chunk).unwrap();
                assert_eq!(seen_by_server.properties.get("socket-type"), Some(&b"DEALER"[..]));
                assert_eq!(seen_by_server.properties.get("X-LANE"), Some(&[1][..]));
                assert_eq!(seen_by_client.properties.get("Socket-Type"), Some(&b"ROUTER"[..]));
                assert_eq!((seen_by_client.minor, seen_by_client.properties.get("none")), (1, None));
            }
        }
    }

    #[test]
    fn a_wrong_password_is_told_and_refused() {
        let told = run(plain("guess"), plain("secret"), 4096).unwrap_err();
        assert_eq!(told, ZmtpError::Refused("invalid credentials".into()));
        assert!(matches!(
            run(Security::Null, plain("secret"), 64),
            Err(ZmtpError::Mechanism(_))
        ));
    }

    #[test]
    fn what_is_no_handshake_is_refused_early() {
        let new = || Handshake::new(Role::Server, Security::Null, &Properties::new());
        assert_eq!(new().feed(b"GET / HTTP/1.1"), Err(ZmtpError::Signature));
        let mut old = greeting::encode("NULL", false);
        old[10] = 2;
        assert_eq!(new().feed(&old[..11]), Err(ZmtpError::Version(2)));
        let mut early = new();
        early.feed(&greeting::encode("NULL", false)).unwrap();
        assert!(early.feed(&[0, 5]).is_err(), "a message before READY");
        let mut large = new();
        large.feed(&greeting::encode("NULL", false)).unwrap();
        assert!(matches!(
            large.feed(&[6, 0, 0, 0, 0, 0, 1, 0, 0]),
            Err(ZmtpError::TooLarge { .. })
        ));
    }

    proptest! {
        #[test]
        fn chunks_change_nothing(chunk in 1usize..200, secure: bool) {
            let security = if secure { plain("secret") } else { Security::Null };
            let whole = run(security.clone(), security.clone(), 4096).unwrap();
            prop_assert_eq!(run(security.clone(), security, chunk).unwrap(), whole);
        }

        #[test]
        fn any_bytes_end_in_an_error_or_wait(bytes in proptest::collection::vec(any::<u8>(), 0..300), greet: bool) {
            let mut handshake = Handshake::new(Role::Server, plain("x"), &Properties::new());
            if greet {
                handshake.feed(&greeting::encode("PLAIN", false)).unwrap();
            }
            let _ = handshake.feed(&bytes);
        }
    }
}
