//! How a host is told of its store: by an address, or by the store itself. It must not know what a host does with it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::{BlobStore, LocationStore, MemoryStore, OpenError};

/// A store, or the address of one. `&str` and `String` become one, and every store:
///
/// - `memory://`: in this process, for this host alone. Hosts that shall share one are given clones of a
///   [`MemoryStore`].
/// - `sqlite://path`: a file on a disk of this machine, with the cargo feature `sqlite`. All that follows is the path;
///   `sqlite:///var/lib/shop.db` is an absolute one.
/// - `redis://user:password@host:6379/0?namespace=shop`: a Redis server, with the cargo feature `redis`. All but the
///   host may be left out; the namespace is `zlink` then. No error and no log shows the user and the password.
#[derive(Clone)]
pub struct StoreSource(Source);

#[derive(Clone)]
enum Source {
    Address(String),
    /// And its blobs, where they come with it.
    Store(Arc<dyn LocationStore>, Option<BlobSource>),
}

/// A store of blobs, or the address of one, in the form of a [`StoreSource`]'s. An SQLite file of blobs is one of its own.
#[derive(Clone)]
pub struct BlobSource(Blobs);

#[derive(Clone)]
enum Blobs {
    Address(String),
    Store(Arc<dyn BlobStore>),
}

/// The namespace of an address that names none.
const NAMESPACE: &str = "zlink";

/// What an address leads to.
#[derive(Debug, PartialEq, Eq)]
enum Address<'a> {
    Memory,
    Sqlite(&'a str),
    Redis { server: &'a str, namespace: &'a str },
}

/// An address as it may be shown: without what stands before the host, which may be a password. Only a path has none.
pub(super) fn shown(address: &str) -> String {
    let (scheme, rest) = match address.split_once("://") {
        Some(("sqlite", _)) => return address.to_owned(),
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), address),
    };
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    format!("{scheme}{host}")
}

impl fmt::Debug for StoreSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Source::Address(address) => write!(f, "StoreSource({:?})", shown(address)),
            Source::Store(store, _) => write!(f, "StoreSource({store:?})"),
        }
    }
}

impl fmt::Debug for BlobSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Blobs::Address(address) => write!(f, "BlobSource({:?})", shown(address)),
            Blobs::Store(store) => write!(f, "BlobSource({store:?})"),
        }
    }
}

impl BlobSource {
    /// Checks the address without opening anything.
    ///
    /// # Errors
    /// Where it is none, or of a store that this build does not have.
    pub fn check(&self) -> Result<(), OpenError> {
        match &self.0 {
            Blobs::Store(_) => Ok(()),
            Blobs::Address(text) => parse(text).map(drop),
        }
    }

    /// Opens the store.
    ///
    /// # Errors
    /// What [`BlobSource::check`] finds, or what keeps the store from being opened.
    pub async fn open(&self) -> Result<Arc<dyn BlobStore>, OpenError> {
        match &self.0 {
            Blobs::Store(store) => Ok(store.clone()),
            Blobs::Address(text) => match parse(text)? {
                Address::Memory => Ok(Arc::new(MemoryStore::new())),
                Address::Sqlite(path) => open_sqlite_blobs(path).await,
                Address::Redis { server, namespace } => open_redis_blobs(server, namespace).await,
            },
        }
    }
}

impl StoreSource {
    /// Checks the address without opening anything.
    ///
    /// # Errors
    /// Where it is none, or of a store that this build does not have.
    pub fn check(&self) -> Result<(), OpenError> {
        match &self.0 {
            Source::Store(..) => Ok(()),
            Source::Address(text) => parse(text).map(drop),
        }
    }

    /// The store of blobs that comes with it: of an address the same place, of SQLite the file beside it whose name ends in
    /// `-blobs`, of a [`MemoryStore`] itself. Another provider has none.
    pub(crate) fn blobs(&self) -> Option<BlobSource> {
        match &self.0 {
            Source::Address(text) if text.starts_with("sqlite://") => {
                Some(BlobSource(Blobs::Address(format!("{text}-blobs"))))
            }
            Source::Address(text) => Some(BlobSource(Blobs::Address(text.clone()))),
            Source::Store(_, blobs) => blobs.clone(),
        }
    }

    /// Opens the store.
    ///
    /// # Errors
    /// What [`StoreSource::check`] finds, or what keeps the store from being opened.
    pub async fn open(self) -> Result<Arc<dyn LocationStore>, OpenError> {
        match self.0 {
            Source::Store(store, _) => Ok(store),
            Source::Address(text) => match parse(&text)? {
                Address::Memory => Ok(Arc::new(MemoryStore::new())),
                Address::Sqlite(path) => open_sqlite(path).await,
                Address::Redis { server, namespace } => open_redis(server, namespace).await,
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

#[cfg(feature = "sqlite")]
async fn open_sqlite_blobs(path: &str) -> Result<Arc<dyn BlobStore>, OpenError> {
    Ok(Arc::new(super::SqliteBlobStore::open(path).await?))
}

#[cfg(not(feature = "sqlite"))]
async fn open_sqlite_blobs(path: &str) -> Result<Arc<dyn BlobStore>, OpenError> {
    Err(OpenError::new(path, WITHOUT_SQLITE))
}

#[cfg(feature = "redis")]
async fn open_redis_blobs(server: &str, namespace: &str) -> Result<Arc<dyn BlobStore>, OpenError> {
    Ok(Arc::new(super::RedisBlobStore::open(server, namespace).await?))
}

#[cfg(not(feature = "redis"))]
async fn open_redis_blobs(server: &str, _: &str) -> Result<Arc<dyn BlobStore>, OpenError> {
    Err(OpenError::new(&shown(server), WITHOUT_REDIS))
}

#[cfg(feature = "redis")]
async fn open_redis(server: &str, namespace: &str) -> Result<Arc<dyn LocationStore>, OpenError> {
    Ok(Arc::new(super::RedisStore::open(server, namespace).await?))
}

#[cfg(not(feature = "redis"))]
async fn open_redis(server: &str, _: &str) -> Result<Arc<dyn LocationStore>, OpenError> {
    // The address was refused before.
    Err(OpenError::new(&shown(server), WITHOUT_REDIS))
}

const WITHOUT_REDIS: &str = "this build has no Redis; turn on the cargo feature `redis` of zlink-runtime";
const WITHOUT_SQLITE: &str = "this build has no SQLite; turn on the cargo feature `sqlite` of zlink-runtime";

fn parse(text: &str) -> Result<Address<'_>, OpenError> {
    let refuse = |problem: &str| Err(OpenError::new(&shown(text), problem));
    let Some((scheme, rest)) = text.split_once("://") else {
        return match text.split_once(':') {
            Some(("sqlite", path)) => refuse(&format!("lacks the slashes; write sqlite://{path}")),
            _ => refuse("is no address of a store; write memory://, sqlite://path or redis://host"),
        };
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
        "redis" => match rest.split_once('?') {
            _ if !cfg!(feature = "redis") => refuse(WITHOUT_REDIS),
            _ if matches!(rest.chars().next(), None | Some('?' | '/')) => refuse("names no server; write redis://host"),
            None => Ok(Address::Redis {
                server: text,
                namespace: NAMESPACE,
            }),
            Some((server, option)) => match option.strip_prefix("namespace=") {
                Some(namespace) => Ok(Address::Redis {
                    server: &text[.."redis://".len() + server.len()],
                    namespace,
                }),
                None => refuse("has an option that there is not; the only one is ?namespace=name"),
            },
        },
        "rediss" => refuse("asks for TLS, which is not built yet; write redis://host, and secure the way to it"),
        "etcd" => refuse("is of a kind that is not built yet; write memory://, sqlite://path or redis://host"),
        _ => refuse("is of no kind of store that there is; write memory://, sqlite://path or redis://host"),
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
        let memory = (&store as &dyn Any).downcast_ref::<MemoryStore>();
        let blobs = memory.map(|store| BlobSource::from(store.clone()));
        Self(Source::Store(Arc::new(store), blobs))
    }
}

impl From<&str> for BlobSource {
    fn from(address: &str) -> Self {
        Self(Blobs::Address(address.to_owned()))
    }
}

impl From<String> for BlobSource {
    fn from(address: String) -> Self {
        Self(Blobs::Address(address))
    }
}

impl<S: BlobStore> From<S> for BlobSource {
    fn from(store: S) -> Self {
        Self(Blobs::Store(Arc::new(store)))
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
            ("sqlite:zlink.db", "write sqlite://zlink.db"),
            ("memory://x", "clones"),
            ("sqlite://", "names no file"),
            ("sqlite://a?mode=ro", "'?'"),
            ("rediss://localhost", "TLS"),
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

    #[test]
    fn blobs_are_where_the_store_is() {
        let shown = |source: StoreSource| source.blobs().map(|blobs| format!("{blobs:?}"));
        assert_eq!(
            shown("sqlite://a.db".into()).as_deref(),
            Some("BlobSource(\"sqlite://a.db-blobs\")")
        );
        assert_eq!(
            shown("redis://me:secret@a".into()).as_deref(),
            Some("BlobSource(\"redis://a\")")
        );
        assert_eq!(
            shown(MemoryStore::new().into()).as_deref(),
            Some("BlobSource(MemoryStore)")
        );
    }

    #[cfg(feature = "sqlite")]
    #[test]
    fn the_path_of_a_file_is_taken_as_it_is() {
        for path in ["zlink.db", "./a b/%20.db", "/var/lib/\u{e4}.db"] {
            assert_eq!(parse(&format!("sqlite://{path}")), Ok(Address::Sqlite(path)));
        }
    }

    #[cfg(feature = "redis")]
    #[test]
    fn a_server_and_its_namespace() {
        let redis = |server, namespace| Ok(Address::Redis { server, namespace });
        assert_eq!(parse("redis://a"), redis("redis://a", "zlink"));
        let full = "redis://me:secret@a:7000/3?namespace=shop.eu";
        assert_eq!(parse(full), redis("redis://me:secret@a:7000/3", "shop.eu"));
        for (address, part) in [
            ("redis://", "no server"),
            ("redis://?namespace=a", "no server"),
            ("redis://me:secret@a?db=3", "namespace=name"),
        ] {
            let problem = parse(address).unwrap_err().to_string();
            assert!(problem.contains(part) && !problem.contains("secret"), "{problem}");
        }
        let debug = format!("{:?}", StoreSource::from(full));
        assert!(debug.contains("a:7000") && !debug.contains("secret"), "{debug}");
    }

    #[cfg(not(feature = "redis"))]
    #[test]
    fn without_its_feature_a_server_is_refused() {
        assert!(problem("redis://a").contains("cargo feature `redis`"));
    }

    #[cfg(not(feature = "sqlite"))]
    #[test]
    fn without_the_feature_a_file_is_refused_with_its_name() {
        assert!(problem("sqlite://a").contains("cargo feature `sqlite`"));
    }
}
