//! A connection as a stranger uses it: the ZMTP handshake, then whatever comes, in pieces of any size.

use zlink_runtime::fuzz::Receiver;
use zlink_runtime::transport::zmtp::{Handshake, Properties, Role, Security};

/// The first byte chooses the side and the mechanism, the second how the rest is cut into reads.
pub(crate) fn read(input: &[u8]) {
    let Some((&[choice, cut], input)) = input.split_first_chunk() else {
        return;
    };
    let security = if choice & 1 == 0 {
        Security::Null
    } else {
        Security::Plain {
            username: "u".into(),
            password: "p".into(),
        }
    };
    let role = if choice & 2 == 0 { Role::Server } else { Role::Client };
    let pieces = || Pieces {
        left: input,
        cut: usize::from(cut),
    };
    if choice & 4 != 0 {
        // A link that is open already: most inputs would never come this far.
        return receive(pieces());
    }
    let mut handshake = Handshake::new(role, security, &Properties::new().with("Socket-Type", "ROUTER"));
    let mut pieces = pieces();
    while let Some(piece) = pieces.next() {
        let Ok(taken) = handshake.feed(piece) else { return };
        assert!(taken <= piece.len(), "the handshake takes more than it was given");
        drop(handshake.take_output());
        if handshake.take_ready().is_some() {
            let left = pieces.left.len() + piece.len() - taken;
            pieces.left = &input[input.len() - left..];
            return receive(pieces);
        }
        assert_eq!(taken, piece.len(), "the handshake leaves bytes before it is done");
    }
}

fn receive(pieces: Pieces<'_>) {
    let mut receiver = Receiver::new();
    for piece in pieces {
        if !receiver.receive(piece) {
            return;
        }
    }
}

/// Input as reads bring it.
struct Pieces<'a> {
    left: &'a [u8],
    cut: usize,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.left.is_empty() {
            return None;
        }
        // 0: all at once; else pieces of changing length.
        let length = if self.cut == 0 {
            self.left.len()
        } else {
            1 + self.cut * 7 % 61
        };
        self.cut = if self.cut == 0 { 0 } else { 1 + self.cut * 5 % 255 };
        let (piece, left) = self.left.split_at(length.min(self.left.len()));
        self.left = left;
        Some(piece)
    }
}
