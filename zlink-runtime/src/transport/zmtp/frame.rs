//! Frame heads, and the decoder that walks from head to head. It must not know what a body holds, nor keep one.

use super::ZmtpError;
use crate::limit;

/// The longest frame head, in bytes.
pub const FRAME_HEAD: usize = 9;

const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// A head for a body of `len` bytes, right-aligned: the returned index is where it starts.
#[must_use]
pub fn frame_head(len: usize, more: bool, command: bool) -> ([u8; FRAME_HEAD], usize) {
    let flags = (u8::from(more) * MORE) | (u8::from(command) * COMMAND);
    let mut head = [0; FRAME_HEAD];
    match u8::try_from(len) {
        Ok(short) => {
            head[FRAME_HEAD - 2..].copy_from_slice(&[flags, short]);
            (head, FRAME_HEAD - 2)
        }
        Err(_) => {
            head[0] = flags | LONG;
            head[1..].copy_from_slice(&(len as u64).to_be_bytes());
            (head, 0)
        }
    }
}

/// What a decoder lets pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLimits {
    /// All bodies of one message together, in bytes.
    pub message: usize,
    /// Frames of one message.
    pub parts: usize,
}

impl FrameLimits {
    /// At most `message` bytes in at most [`limit::MESSAGE_FRAMES`] frames.
    #[must_use]
    pub const fn new(message: usize) -> Self {
        Self {
            message,
            parts: limit::MESSAGE_FRAMES,
        }
    }
}

/// What follows a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// A message frame with a body of that many bytes.
    Frame {
        /// The body, in bytes.
        len: usize,
        /// Whether it is the first of its message.
        first: bool,
        /// Whether another frame of the same message follows.
        more: bool,
    },
    /// A command with a body of that many bytes, at most [`limit::COMMAND_BYTES`].
    Command {
        /// The body, in bytes.
        len: usize,
    },
}

/// Reads heads and keeps the bounds of a message across its frames. The caller steps over the bodies.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    parts: usize,
    bytes: usize,
}

impl Decoder {
    /// A decoder at the start of a message.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the head at the start of `input`: how many bytes it takes, and what it says; `None` where it is not
    /// all there yet.
    ///
    /// # Errors
    /// Where it is malformed, or declares more than `limits` allow.
    pub fn head(&mut self, input: &[u8], limits: FrameLimits) -> Result<Option<(usize, Head)>, ZmtpError> {
        let Some(&flags) = input.first() else { return Ok(None) };
        if flags & !(MORE | LONG | COMMAND) != 0 || flags & (MORE | COMMAND) == MORE | COMMAND {
            return Err(ZmtpError::Malformed("frame flags"));
        }
        let (head, size) = if flags & LONG == 0 {
            let Some(&size) = input.get(1) else { return Ok(None) };
            (2, u64::from(size))
        } else {
            let Some(size) = input.get(1..).and_then(<[u8]>::first_chunk) else {
                return Ok(None);
            };
            (FRAME_HEAD, u64::from_be_bytes(*size))
        };
        if flags & COMMAND != 0 {
            let len = bounded("a command", size, limit::COMMAND_BYTES)?;
            return Ok(Some((head, Head::Command { len })));
        }
        let len = bounded("a frame", size, limits.message)?;
        let (first, more) = (self.parts == 0, flags & MORE != 0);
        self.parts += 1;
        self.bytes = self.bytes.saturating_add(len);
        bounded("a message", self.bytes as u64, limits.message)?;
        if self.parts > limits.parts || (more && self.parts == limits.parts) {
            let limit = limits.parts as u64;
            return Err(ZmtpError::TooLarge {
                what: "a message in frames",
                size: limit + 1,
                limit,
            });
        }
        if !more {
            *self = Self::default();
        }
        Ok(Some((head, Head::Frame { len, first, more })))
    }
}

fn bounded(what: &'static str, size: u64, limit: usize) -> Result<usize, ZmtpError> {
    match usize::try_from(size) {
        Ok(size) if size <= limit => Ok(size),
        _ => Err(ZmtpError::TooLarge {
            what,
            size,
            limit: limit as u64,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bounds_hold_before_any_body() {
        let limits = FrameLimits::new(1000);
        let head = |bytes: &[u8]| Decoder::new().head(bytes, limits);
        for power in [40, 62, 63] {
            let mut long = vec![LONG];
            long.extend((1u64 << power).to_be_bytes());
            assert!(matches!(head(&long), Err(ZmtpError::TooLarge { what: "a frame", .. })));
            long[0] = LONG | COMMAND;
            assert!(matches!(
                head(&long),
                Err(ZmtpError::TooLarge { what: "a command", .. })
            ));
        }
        assert!(matches!(head(&[8, 0]), Err(ZmtpError::Malformed(_))));
        assert!(matches!(head(&[MORE | COMMAND, 0]), Err(ZmtpError::Malformed(_))));
        assert_eq!(head(&[MORE]), Ok(None));
        assert_eq!(head(&[LONG, 0, 0, 0]), Ok(None));
    }

    #[test]
    fn a_message_is_bounded_across_its_frames() {
        let limits = FrameLimits::new(1000);
        let mut decoder = Decoder::new();
        for part in 0..4 {
            let (_, head) = decoder.head(&[MORE, 250], limits).unwrap().unwrap();
            assert_eq!(
                head,
                Head::Frame {
                    len: 250,
                    first: part == 0,
                    more: true
                }
            );
        }
        assert!(matches!(
            decoder.head(&[MORE, 1], limits),
            Err(ZmtpError::TooLarge { what: "a message", .. })
        ));

        let mut decoder = Decoder::new();
        for _ in 1..limit::MESSAGE_FRAMES {
            decoder.head(&[MORE, 0], limits).unwrap();
        }
        let mut last = decoder.clone();
        assert!(last.head(&[0, 0], limits).is_ok());
        assert!(last.head(&[MORE, 0], limits).is_ok(), "a new message starts");
        assert!(decoder.head(&[MORE, 0], limits).is_err(), "endless multipart");
    }

    proptest! {
        #[test]
        fn heads_read_back(len in prop_oneof![0usize..300, 0usize..1 << 30], more: bool) {
            let (head, from) = frame_head(len, more, false);
            let limits = FrameLimits::new(1 << 30);
            let read = Decoder::new().head(&head[from..], limits).unwrap();
            prop_assert_eq!(read, Some((FRAME_HEAD - from, Head::Frame { len, first: true, more })));
            for cut in from..FRAME_HEAD {
                prop_assert_eq!(Decoder::new().head(&head[from..cut], limits), Ok(None));
            }
        }
    }
}
