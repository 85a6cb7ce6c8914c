//! Commands and their bodies: a short name, then data. It must not know when a command is allowed.

use super::ZmtpError;
use super::frame::frame_head;

/// The longest context of a PING, which its PONG repeats, in bytes.
pub const MAX_PING_CONTEXT: usize = 16;

/// A command, borrowed from the bytes it was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command<'a> {
    /// The handshake's last word; metadata follows.
    Ready(&'a [u8]),
    /// PLAIN: the client's credentials.
    Hello {
        /// The user name.
        username: &'a [u8],
        /// The password.
        password: &'a [u8],
    },
    /// PLAIN: the credentials are accepted.
    Welcome,
    /// PLAIN: the client's metadata.
    Initiate(&'a [u8]),
    /// The handshake has failed, with the reason.
    Error(&'a [u8]),
    /// Are you there?
    Ping {
        /// How long the sender may be silent before it counts as dead, in tenths of a second; 0: no bound.
        ttl: u16,
        /// To be repeated in the PONG.
        context: &'a [u8],
    },
    /// I am.
    Pong(&'a [u8]),
    /// A subscriber wants topics that start so.
    Subscribe(&'a [u8]),
    /// A subscriber no longer wants them.
    Cancel(&'a [u8]),
    /// A command that this version does not know, to be skipped.
    Other(&'a [u8]),
}

impl<'a> Command<'a> {
    /// Reads a command's body.
    ///
    /// # Errors
    /// Where it is malformed.
    pub fn decode(body: &'a [u8]) -> Result<Self, ZmtpError> {
        let (name, data) = short(body)
            .filter(|(name, _)| !name.is_empty())
            .ok_or(ZmtpError::Malformed("command"))?;
        Ok(match name {
            b"READY" => Self::Ready(data),
            b"INITIATE" => Self::Initiate(data),
            b"WELCOME" => Self::Welcome,
            b"SUBSCRIBE" => Self::Subscribe(data),
            b"CANCEL" => Self::Cancel(data),
            b"PONG" => Self::Pong(checked_context(data)?),
            b"PING" => {
                let (ttl, context) = data.split_first_chunk().ok_or(ZmtpError::Malformed("PING"))?;
                Self::Ping {
                    ttl: u16::from_be_bytes(*ttl),
                    context: checked_context(context)?,
                }
            }
            b"ERROR" => {
                let (reason, _) = short(data).ok_or(ZmtpError::Malformed("ERROR"))?;
                Self::Error(reason)
            }
            b"HELLO" => {
                let parts = short(data).and_then(|(username, rest)| Some((username, short(rest)?)));
                match parts {
                    Some((username, (password, []))) => Self::Hello { username, password },
                    _ => return Err(ZmtpError::Malformed("HELLO")),
                }
            }
            _ => Self::Other(name),
        })
    }
}

fn checked_context(context: &[u8]) -> Result<&[u8], ZmtpError> {
    if context.len() > MAX_PING_CONTEXT {
        return Err(ZmtpError::Malformed("PING context"));
    }
    Ok(context)
}

/// A string with a length of one byte, and what follows it.
pub(super) fn short(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&len, rest) = data.split_first()?;
    rest.split_at_checked(len.into())
}

/// Appends a string with a length of one byte; longer text is cut.
pub(super) fn put_short(out: &mut Vec<u8>, text: &[u8]) {
    let text = &text[..text.len().min(255)];
    #[allow(clippy::cast_possible_truncation, reason = "cut to 255 above")]
    out.push(text.len() as u8);
    out.extend_from_slice(text);
}

/// Appends a whole command frame: head, name, data.
pub(super) fn put_command(out: &mut Vec<u8>, name: &str, data: &[u8]) {
    let (head, from) = frame_head(1 + name.len() + data.len(), false, true);
    out.extend_from_slice(&head[from..]);
    put_short(out, name.as_bytes());
    out.extend_from_slice(data);
}

/// Appends a PING. `ttl` is in tenths of a second; of `context` at most [`MAX_PING_CONTEXT`] bytes are sent.
pub fn encode_ping(out: &mut Vec<u8>, ttl: u16, context: &[u8]) {
    let context = &context[..context.len().min(MAX_PING_CONTEXT)];
    put_command(out, "PING", &[&ttl.to_be_bytes(), context].concat());
}

/// Appends the PONG that answers a PING with this context.
pub fn encode_pong(out: &mut Vec<u8>, context: &[u8]) {
    put_command(out, "PONG", &context[..context.len().min(MAX_PING_CONTEXT)]);
}

/// Appends a SUBSCRIBE, or a CANCEL.
pub fn encode_subscription(out: &mut Vec<u8>, subscribe: bool, topic: &[u8]) {
    put_command(out, if subscribe { "SUBSCRIBE" } else { "CANCEL" }, topic);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn body(frame: &[u8]) -> &[u8] {
        &frame[2..]
    }

    #[test]
    fn commands_read_back() {
        let mut out = Vec::new();
        encode_ping(&mut out, 150, b"abc");
        assert_eq!(out[..2], [4, 10]);
        assert_eq!(
            Command::decode(body(&out)),
            Ok(Command::Ping {
                ttl: 150,
                context: b"abc"
            })
        );
        out.clear();
        encode_pong(&mut out, b"abc");
        assert_eq!(Command::decode(body(&out)), Ok(Command::Pong(b"abc")));
        out.clear();
        encode_subscription(&mut out, true, b"topic");
        assert_eq!(Command::decode(body(&out)), Ok(Command::Subscribe(b"topic")));
    }

    #[test]
    fn malformed_commands_are_refused() {
        for bad in [
            &b""[..],
            b"\0",
            b"\x09PING",
            b"\x04PING\0",
            b"\x04PING\0\0aaaaaaaaaaaaaaaaa",
            b"\x05HELLO\x01",
        ] {
            assert!(matches!(Command::decode(bad), Err(ZmtpError::Malformed(_))), "{bad:?}");
        }
        assert_eq!(Command::decode(b"\x03NEW"), Ok(Command::Other(b"NEW")));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = Command::decode(&bytes);
        }
    }
}
