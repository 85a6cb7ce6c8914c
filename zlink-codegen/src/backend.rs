//! Back ends: each turns the IR into files of one language.
//!
//! They see neither syntax nor each other.

#[cfg(feature = "cli")]
pub mod docs;
#[cfg(feature = "cli")]
pub mod flatbuffers;
#[cfg(feature = "cli")]
pub mod python;
pub mod rust;
#[cfg(feature = "cli")]
pub mod tera;
#[cfg(feature = "cli")]
pub mod typescript;
