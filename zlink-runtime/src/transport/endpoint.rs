//! Endpoints: `tcp://host:port` and `ipc://path`. It must not open one.

use std::fmt;

/// Where a listener is, or shall be.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint(String);

/// Why a text is no endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("endpoint {text:?}: {problem}")]
pub struct InvalidEndpoint {
    text: String,
    problem: &'static str,
}

impl Endpoint {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for Endpoint {
    type Err = InvalidEndpoint;
    fn from_str(text: &str) -> Result<Self, InvalidEndpoint> {
        if text.starts_with("tcp://") || text.starts_with("ipc://") {
            return Ok(Self(text.to_owned()));
        }
        Err(InvalidEndpoint {
            text: text.to_owned(),
            problem: "write tcp://host:port or ipc://path",
        })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
