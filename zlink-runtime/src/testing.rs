//! For those who test what they build on zlink, or build a part of it anew. Cargo feature `testing`.

pub mod transport;
