//! Routing, permits and ordered execution for services generated from zlink schemas, over ZeroMQ.

pub mod error;
pub mod id;
pub mod limit;
pub mod permit;
pub mod transport;

mod call;
mod clock;
mod sync;
