//! How a host is told of its store: by an address, or by the store itself. It must not know what a host does with it.

use std::sync::Arc;

use super::{LocationStore, MemoryStore, OpenError};

/// A store, or the address of one:
///
/// - `memory://`: in this process, for this host alone. Hosts that shall share one are given clones of a
///   [`MemoryStore`].
/// - `sqlite://path`: a file on a disk of this machine, with the cargo feature `sqlite`. All that follows is the path;
///   `sqlite:///var/lib/shop.db` is an absolute one.
#[derive(Clone, Debug)]
pub struct StoreSource(Source);

#[derive(Clone, Debug)]
enum Source {
    Address(String),
    Store(Arc<dyn LocationStore>),
}

/// What an address leads to.
#[derive(Debug, PartialEq, Eq)]
enum Address<'a> {
    Memory,
    Sqlite(&'a str),
}

impl StoreSource {
    /// Checks the address without opening anything.
    ///
    /// # Errors
    /// Where it is none, or of a store that this build does not have.
    pub fn check(&self) -> Result<(), OpenError> {
        match &self.0 {
            Source::Store(_) => Ok(()),
            Source::Address(text) => parse(text).map(drop),
        }
    }

    /// Opens the store.
    ///
    /// # Errors
    /// What [`StoreSource::check`] finds, or what keeps the store from being opened.
    pub async fn open(self) -> Result<Arc<dyn LocationStore>, OpenError> {
        match self.0 {
            Source::Store(store) => Ok(store),
            Source::Address(text) => match parse(&text)? {
                Address::Memory => Ok(Arc::new(MemoryStore::new())),
                Address::Sqlite(path) => open_sqlite(path).await,
            },
        }
    }
}

#[cfg(feature = "sqlite")]
async fn open_sqlite(path: &str) -> Result<Arc<dyn LocationStore>, OpenError> {
    Ok(Arc::new(super::SqliteStore::open(path).await?))
}

#[cfg(not(feature = "sqlite"))]
async fn open_sqlite(path: &str) -> Result<Arc<dyn LocationStore>, OpenError> {
    // The address was refused before.
    Err(OpenError::new(path, WITHOUT_SQLITE))
}

const WITHOUT_SQLITE: &str = "this build has no SQLite; turn on the cargo feature `sqlite` of zlink-runtime";

fn parse(text: &str) -> Result<Address<'_>, OpenError> {
    let refuse = |problem: &str| Err(OpenError::new(text, problem));
    let Some((scheme, rest)) = text.split_once("://") else {
        return refuse("is no address of a store; write memory:// or sqlite://path");
    };
    match scheme {
        "memory" if rest.is_empty() => Ok(Address::Memory),
        "memory" => refuse("takes nothing after memory://; hosts share a store by clones of one MemoryStore"),
        "sqlite" if rest.is_empty() => refuse("names no file; write sqlite://path"),
        "sqlite" if rest.contains(['?', '#', '\0']) => {
            refuse("has one of the characters '?', '#' and NUL in its path; rename the file")
        }
        "sqlite" if cfg!(feature = "sqlite") => Ok(Address::Sqlite(rest)),
        "sqlite" => refuse(WITHOUT_SQLITE),
        "redis" | "rediss" | "etcd" => refuse("is of a kind that is not built yet; write memory:// or sqlite://path"),
        _ => refuse("is of no kind of store that there is; write memory:// or sqlite://path"),
    }
}

impl From<&str> for StoreSource {
    fn from(address: &str) -> Self {
        Self(Source::Address(address.to_owned()))
    }
}

impl From<String> for StoreSource {
    fn from(address: String) -> Self {
        Self(Source::Address(address))
    }
}

impl<S: LocationStore> From<S> for StoreSource {
    fn from(store: S) -> Self {
        Self(Source::Store(Arc::new(store)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(address: &str) -> String {
        parse(address).unwrap_err().to_string()
    }

    #[test]
    fn addresses() {
        assert_eq!(parse("memory://"), Ok(Address::Memory));
        for (address, part) in [
            ("", "no address"),
            ("memory", "no address"),
            ("zlink.db", "no address"),
            ("memory://x", "clones"),
            ("sqlite://", "names no file"),
            ("sqlite://a?mode=ro", "'?'"),
            ("redis://localhost", "not built yet"),
            ("etcd://localhost", "not built yet"),
            ("postgres://localhost", "no kind of store"),
        ] {
            let problem = problem(address);
            assert!(
                problem.contains(part) && problem.contains(&format!("{address:?}")),
                "{problem}"
            );
        }
        let long = problem(&"x".repeat(5000));
        assert!(long.len() < 300, "{long}");
    }

    #[cfg(feature = "sqlite")]
    #[test]
    fn the_path_of_a_file_is_taken_as_it_is() {
        for path in ["zlink.db", "./a b/%20.db", "/var/lib/\u{e4}.db"] {
            assert_eq!(parse(&format!("sqlite://{path}")), Ok(Address::Sqlite(path)));
        }
    }

    #[cfg(not(feature = "sqlite"))]
    #[test]
    fn without_the_feature_a_file_is_refused_with_its_name() {
        assert!(problem("sqlite://a").contains("cargo feature `sqlite`"));
    }
}
