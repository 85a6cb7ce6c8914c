//! ZMTP 3.1 without I/O: greeting, NULL and PLAIN, READY properties, frame heads, commands.
//!
//! It turns bytes into meaning and back, and checks every bound before anything is allocated. It must not know a
//! socket, a task, a clock, or what a frame's body holds.

mod command;
mod frame;
mod greeting;
mod handshake;

pub use command::{Command, MAX_PING_CONTEXT, encode_ping, encode_pong, encode_subscription};
pub use frame::{Decoder, FRAME_HEAD, FrameLimits, Head, frame_head};
pub use handshake::{Handshake, Properties, Ready, Role, Security};

/// What a peer did that ZMTP, or a bound of ours, forbids.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum ZmtpError {
    /// The first bytes are not a ZMTP greeting.
    #[error("not a ZMTP greeting")]
    Signature,
    /// The peer speaks a ZMTP before 3.0.
    #[error("ZMTP {0}.x; 3.0 or later is needed")]
    Version(u8),
    /// The sides are configured with different mechanisms.
    #[error("the peer's security mechanism is {0:?}, not the one configured here")]
    Mechanism(String),
    /// The credentials were not accepted.
    #[error("the credentials are wrong")]
    Credentials,
    /// The peer sent an ERROR command.
    #[error("the peer refused: {0}")]
    Refused(String),
    /// Bytes that mean nothing.
    #[error("malformed {0}")]
    Malformed(&'static str),
    /// A command that has no place here.
    #[error("unexpected {0}")]
    Unexpected(&'static str),
    /// A declared size exceeds its bound. Nothing was allocated for it.
    #[error("{what} of {size}; at most {limit} allowed")]
    TooLarge {
        /// What it is.
        what: &'static str,
        /// What was declared, in bytes or parts.
        size: u64,
        /// The bound.
        limit: u64,
    },
}

crate::error::shown!(ZmtpError);
