//! How a store fails, as its user must tell it apart. What a store answers (missing, conflict, expired) is no error.

use crate::error::{ArgumentError, ErrorKind};

/// A store operation that has no answer.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The input was refused before any I/O. Nothing was done.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// The store cannot be reached or used now. A write was not applied, and will not be.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// The operation's timeout, which covers the wait for a connection, passed before it was begun. A write was not
    /// applied, and will not be.
    #[error("the store did not answer in time: {0}")]
    DeadlineExceeded(String),
    /// Only of operations that change something: it was sent, and nobody knows what came of it. It was applied, will
    /// be, or never is.
    #[error("the outcome of a store operation is unknown: {0}")]
    Unknown(String),
    /// The store no longer holds all that it had answered: it began anew without its records, or a replica took over that
    /// lacked some. The operation was not done. Those that follow work with what is there now, which every user must
    /// take for incomplete until each host has had the time to say again what it holds.
    #[error("the store has lost records: {0}")]
    Lost(String),
    /// The last revision, 2⁶³ − 1, was issued: no batch can be applied in this namespace any more. None was.
    #[error("the store has issued its last revision; the namespace can only be read")]
    Exhausted,
}

crate::error::shown!(StoreError);

impl StoreError {
    /// For providers: an input that no type could refuse.
    pub fn argument(argument: &'static str, problem: impl Into<String>) -> Self {
        StoreError::Argument(ArgumentError::new(argument, problem))
    }

    /// Whether an operation that changes something may have been done, or may be done yet.
    #[must_use]
    pub const fn may_be_applied(&self) -> bool {
        matches!(self, StoreError::Unknown(_))
    }

    /// What a call that fails for this reason ends with. A refused argument is a fault of the runtime itself.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            StoreError::Argument(_) => ErrorKind::InternalFailure,
            StoreError::Unavailable(_) | StoreError::Unknown(_) | StoreError::Lost(_) => ErrorKind::Unavailable,
            StoreError::DeadlineExceeded(_) => ErrorKind::DeadlineExceeded,
            StoreError::Exhausted => ErrorKind::CapacityExceeded,
        }
    }
}

/// A store that cannot be used from the beginning: its address is wrong, or it cannot be opened.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("store {store:?}: {problem}")]
pub struct OpenError {
    store: String,
    problem: String,
}

crate::error::shown!(OpenError);

impl OpenError {
    /// For providers: what was to be opened, and what is wrong with it.
    pub fn new(store: &str, problem: impl Into<String>) -> Self {
        Self {
            store: store.chars().take(200).collect(),
            problem: problem.into(),
        }
    }
}
