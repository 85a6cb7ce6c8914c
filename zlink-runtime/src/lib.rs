//! Routing, permits and ordered execution for services generated from zlink schemas, over ZeroMQ.

pub mod error;
pub mod id;
pub mod limit;
pub mod permit;
pub mod transport;

mod clock;
#[allow(dead_code, reason = "its callers, the channels, are the next floor to come")]
mod execution;
#[allow(dead_code, reason = "its callers, the channels, are the next floor to come")]
mod routing;
mod sync;
