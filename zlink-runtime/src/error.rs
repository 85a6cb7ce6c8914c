//! What can go wrong, as a caller must tell it apart: one closed set of kinds, and whether the work ran.
//!
//! Configuration and argument errors are types of their own: they have no kind, and never travel.

use std::fmt;

/// Shows an error as people read it: its text, and then what caused it, each on a line of its own.
pub(crate) fn show(error: &dyn std::error::Error, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{error}")?;
    let mut cause = error.source();
    while let Some(error) = cause {
        write!(f, "\n  caused by: {error}")?;
        cause = error.source();
    }
    Ok(())
}

/// `Debug` of an error is what [`show`] shows: a `main` that ends with `?` prints it.
macro_rules! shown {
    ($error:ty) => {
        impl ::std::fmt::Debug for $error {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                $crate::error::show(self, f)
            }
        }
    };
}
pub(crate) use shown;

/// The category of a failure. Names and numbers are the same in every language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The target, handler, path or membership does not exist.
    NotFound = 0,
    /// An exclusive create met an existing object, or an identity clashed.
    AlreadyExists = 1,
    /// The identity exists with another kind or type.
    TypeMismatch = 2,
    /// A needed role, handler or store is not registered in this process.
    NotConfigured = 3,
    /// A filter or an admission policy refused it.
    Rejected = 4,
    /// The target is known but cannot be used now.
    Unavailable = 5,
    /// A bounded resource of the reporting runtime, or placement, is full.
    CapacityExceeded = 6,
    /// The condition for completion was not met in time.
    DeadlineExceeded = 7,
    /// The host has closed admission.
    ShuttingDown = 8,
    /// A record, payload, reply or link contract could not be used.
    ProtocolError = 9,
    /// Wrong use in the present state.
    InvalidOperation = 10,
    /// A published relocation payload is missing or damaged.
    DataLost = 11,
    /// The framework, a handler or a worker failed.
    InternalFailure = 12,
}

impl ErrorKind {
    /// Every kind, by number.
    pub const ALL: [ErrorKind; 13] = [
        ErrorKind::NotFound,
        ErrorKind::AlreadyExists,
        ErrorKind::TypeMismatch,
        ErrorKind::NotConfigured,
        ErrorKind::Rejected,
        ErrorKind::Unavailable,
        ErrorKind::CapacityExceeded,
        ErrorKind::DeadlineExceeded,
        ErrorKind::ShuttingDown,
        ErrorKind::ProtocolError,
        ErrorKind::InvalidOperation,
        ErrorKind::DataLost,
        ErrorKind::InternalFailure,
    ];

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The kind with that number, if there is one.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Whether a failed call ran at its target. It states a fact; it is no advice to repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Execution {
    /// No handler ran, and none will.
    NotExecuted,
    /// A handler may have run, may be running, or may run later.
    Unknown,
}

/// The longest text an error carries, in bytes.
pub const MAX_ERROR_TEXT: usize = 256;

/// A call that failed. Its `Debug` is its text, and whether it was executed.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}: {message}")]
pub struct Error {
    kind: ErrorKind,
    execution: Execution,
    message: String,
}

impl Error {
    /// A failure before any handler could run.
    pub(crate) fn not_executed(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::new(kind, Execution::NotExecuted, message)
    }

    /// A failure after which nobody here knows whether a handler ran.
    pub(crate) fn unknown(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::new(kind, Execution::Unknown, message)
    }

    pub(crate) fn new(kind: ErrorKind, execution: Execution, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if message.len() > MAX_ERROR_TEXT {
            message.truncate(message.floor_char_boundary(MAX_ERROR_TEXT));
        }
        Self {
            kind,
            execution,
            message,
        }
    }

    /// Its category.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Whether the work ran.
    #[must_use]
    pub const fn execution(&self) -> Execution {
        self.execution
    }

    /// What happened, for people. At most 256 bytes; programs must not read meaning into it.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let executed = match self.execution {
            Execution::NotExecuted => "not executed",
            Execution::Unknown => "perhaps executed",
        };
        write!(f, "{self} ({executed})")
    }
}

/// A call's own input was refused, before any work.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{argument}: {problem}")]
pub struct ArgumentError {
    argument: &'static str,
    problem: String,
}

shown!(ArgumentError);

impl ArgumentError {
    pub(crate) fn new(argument: &'static str, problem: impl Into<String>) -> Self {
        Self {
            argument,
            problem: problem.into(),
        }
    }

    /// Which argument was refused.
    #[must_use]
    pub const fn argument(&self) -> &'static str {
        self.argument
    }
}

/// How a call ends, other than well. Its `Debug` is that of what it holds.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The call's own input was refused; nothing was submitted.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// The call failed.
    #[error(transparent)]
    Failed(#[from] Error),
}

impl CallError {
    /// The kind, where the call failed rather than its arguments.
    #[must_use]
    pub const fn kind(&self) -> Option<ErrorKind> {
        match self {
            CallError::Argument(_) => None,
            CallError::Failed(error) => Some(error.kind()),
        }
    }

    /// Whether the work ran. A refused argument means it did not.
    #[must_use]
    pub const fn execution(&self) -> Execution {
        match self {
            CallError::Argument(_) => Execution::NotExecuted,
            CallError::Failed(error) => error.execution(),
        }
    }
}

impl fmt::Debug for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::Argument(error) => fmt::Debug::fmt(error, f),
            CallError::Failed(error) => fmt::Debug::fmt(error, f),
        }
    }
}

/// A handler's failure. The caller learns `InternalFailure`; the text stays in this process's log.
///
/// Every [`std::error::Error`] becomes one with `?`. What the caller is meant to understand belongs in the reply.
pub struct HandlerError(Box<dyn std::error::Error + Send + Sync>);

impl HandlerError {
    /// A failure described by a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into().into())
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(&*self.0, f)
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for HandlerError {
    fn from(error: E) -> Self {
        Self(Box::new(error))
    }
}

/// One mistake in a host's configuration: where it is, and what to do.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct ConfigError {
    place: String,
    problem: String,
}

shown!(ConfigError);

impl ConfigError {
    pub(crate) fn new(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            problem: problem.into(),
        }
    }

    /// The registration it is about, such as `mesh "shop"`.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// What is wrong and what to write instead.
    #[must_use]
    pub fn problem(&self) -> &str {
        &self.problem
    }
}

/// A host that could not start. Nothing is bound, published or running.
#[derive(Clone, PartialEq, Eq)]
pub struct StartError {
    mistakes: Vec<ConfigError>,
}

shown!(StartError);

impl StartError {
    pub(crate) fn new(mistakes: Vec<ConfigError>) -> Self {
        Self { mistakes }
    }

    /// Every mistake that was found, at least one.
    #[must_use]
    pub fn mistakes(&self) -> &[ConfigError] {
        &self.mistakes
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mistakes.as_slice() {
            [one] => write!(f, "the host cannot start: {one}"),
            many => {
                write!(f, "the host cannot start; {} mistakes:", many.len())?;
                for mistake in many {
                    write!(f, "\n  - {mistake}")?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for StartError {}
