//! Host leases: the proof in the store that a host is alive, and what hangs on it.
//!
//! `own` decides for the host itself, `watch` for the others; both are pure machines over the moments they are given.
//! `keeper` does the I/O for `own`. It must not know what the records of a host say.

use std::fmt;

use crate::message::codec;
use crate::wire;

use super::Revision;

mod keeper;
mod own;
mod records;
mod taken;
mod watch;

pub(crate) use keeper::{HostLease, LeaseConfig, LeasePhase};
pub(crate) use records::Record;
pub(crate) use watch::{LeaseSeen, LeaseWatch, Standing};

/// What the value of a lease says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LeaseValue {
    /// Its first write's revision; `None` in that write.
    generation: Option<Revision>,
    ttl: std::time::Duration,
    nonce: u64,
}

impl LeaseValue {
    fn to_bytes(self) -> Result<Vec<u8>, codec::EncodeError> {
        let value = wire::Lease {
            generation: self.generation.map_or(0, Revision::get),
            ttl_ms: u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX),
            nonce: self.nonce.to_le_bytes().to_vec(),
        };
        codec::encode(&value, <[u8]>::to_vec)
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, NotALease> {
        let value = codec::decode::<wire::Lease>(bytes).map_err(|error| NotALease(error.to_string()))?;
        let nonce = value
            .nonce
            .try_into()
            .map_err(|_| NotALease("its nonce is not 8 bytes".into()))?;
        Ok(Self {
            generation: Revision::new(value.generation),
            ttl: std::time::Duration::from_millis(value.ttl_ms),
            nonce: u64::from_le_bytes(nonce),
        })
    }
}

/// A value under the key of a lease that is none.
#[derive(Debug)]
struct NotALease(String);

impl fmt::Display for NotALease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the value under a lease's key is no lease: {}", self.0)
    }
}
