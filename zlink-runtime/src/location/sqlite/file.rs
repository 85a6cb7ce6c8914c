//! The file itself: whether it is ours, how it is opened, how transactions begin. It must not know what is asked.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::location::StoreError;

/// What a file holds. Each has its own, told apart by SQLite's application id.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Records,
    Blobs,
}

impl Kind {
    /// "zlnk" and "zlnb".
    const fn application(self) -> i64 {
        match self {
            Kind::Records => 0x7a6c_6e6b,
            Kind::Blobs => 0x7a6c_6e62,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Kind::Records => "location store",
            Kind::Blobs => "relocation store",
        }
    }

    const fn tables(self) -> &'static str {
        match self {
            Kind::Records => {
                "CREATE TABLE records(key BLOB PRIMARY KEY, value BLOB NOT NULL, revision INTEGER NOT NULL,
                     expiry INTEGER) WITHOUT ROWID, STRICT;
                 CREATE INDEX record_expiry ON records(expiry) WHERE expiry IS NOT NULL;
                 CREATE TABLE state(id INTEGER PRIMARY KEY CHECK (id = 0), revision INTEGER NOT NULL) STRICT;
                 INSERT INTO state VALUES (0, 0);"
            }
            Kind::Blobs => {
                "CREATE TABLE blobs(reference BLOB NOT NULL UNIQUE, bytes BLOB NOT NULL, expiry INTEGER NOT NULL)
                     STRICT;
                 CREATE INDEX blob_expiry ON blobs(expiry);"
            }
        }
    }
}

/// The version of the tables that this code reads and writes.
const VERSION: i64 = 1;
/// How long opening waits for other processes.
const OPEN_TIME: Duration = Duration::from_secs(10);

/// An open file.
pub(super) struct File {
    pub(super) connection: Connection,
    path: PathBuf,
    identity: Option<(u64, u64)>,
}

impl File {
    /// Opens the file and makes its tables where it is new. The error says what is wrong with it.
    pub(super) fn open(path: &Path, kind: Kind) -> Result<Self, String> {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        if !folder.is_dir() {
            return Err(format!("the folder {} does not exist", folder.display()));
        }
        if path.is_dir() {
            return Err("it is a folder; name a file in it".to_owned());
        }
        refuse_network(if path.exists() { path } else { folder })?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let until = Instant::now() + OPEN_TIME;
        let tell = |error: rusqlite::Error| explain(&error, kind);
        let connection = Connection::open_with_flags(path, flags).map_err(tell)?;
        connection.set_prepared_statement_cache_capacity(32);
        // How long anything waits is decided here, not in SQLite.
        connection.busy_timeout(Duration::ZERO).map_err(tell)?;
        let file = Self {
            connection,
            path: path.to_owned(),
            identity: std::fs::metadata(path).ok().as_ref().and_then(identity),
        };
        // Nothing is changed before the file is known to be ours.
        let is_new = patiently(until, || file.look(kind))?;
        // Several processes may come here at once.
        patiently(until, || file.use_wal().map_err(Trouble::from))?;
        if is_new {
            patiently(until, || file.make_tables(kind))?;
        }
        if kind == Kind::Records {
            patiently(until, || file.check_whole())?;
        }
        Ok(file)
    }

    /// As [`File::is_new`], at one moment: between two looks, another process may make the tables.
    fn look(&self, kind: Kind) -> Result<bool, Trouble> {
        self.connection
            .execute_batch("BEGIN")
            .map_err(|error| Trouble::of(&error, kind))?;
        let is_new = self.is_new(kind);
        self.roll_back();
        is_new
    }

    /// Whether it has no tables yet; an error where it has others than ours.
    fn is_new(&self, kind: Kind) -> Result<bool, Trouble> {
        let number = |pragma| {
            self.connection
                .pragma_query_value(None, pragma, |row| row.get::<_, i64>(0))
        };
        let application = number("application_id").map_err(|error| Trouble::of(&error, kind))?;
        let version = number("user_version").map_err(|error| Trouble::of(&error, kind))?;
        if application == kind.application() {
            return match version {
                VERSION => Ok(false),
                other => Err(Trouble::Final(format!(
                    "its tables have version {other}, and this program knows version {VERSION}; use the one that made \
                     it, or a new file"
                ))),
            };
        }
        for other in [Kind::Records, Kind::Blobs] {
            if application == other.application() {
                let problem = format!(
                    "it is a {}, not a {}; each needs a file of its own",
                    other.name(),
                    kind.name()
                );
                return Err(Trouble::Final(problem));
            }
        }
        let tables = self
            .connection
            .query_row("SELECT count(*) FROM sqlite_schema", (), |row| row.get::<_, i64>(0));
        match tables.map_err(|error| Trouble::of(&error, kind))? {
            0 if application == 0 && version == 0 => Ok(true),
            _ => Err(Trouble::Final(format!(
                "it is a database of another program, not a {}; nothing in it was changed",
                kind.name()
            ))),
        }
    }

    fn use_wal(&self) -> Result<(), rusqlite::Error> {
        // Before journal_mode, since changing that writes.
        self.connection
            .execute_batch("PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=0;")?;
        let mode = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
        let mode = self.connection.query_row("PRAGMA journal_mode=WAL", (), mode)?;
        if mode == "wal" {
            return Ok(());
        }
        let text = format!("its journal is {mode:?} and cannot be \"wal\"; the filesystem may not share memory");
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN);
        Err(rusqlite::Error::SqliteFailure(code, Some(text)))
    }

    fn make_tables(&self, kind: Kind) -> Result<(), Trouble> {
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        // Another process may have been faster.
        let made = self.is_new(kind).and_then(|is_new| {
            if is_new {
                self.connection.execute_batch(kind.tables())?;
                self.connection
                    .pragma_update(None, "application_id", kind.application())?;
                self.connection.pragma_update(None, "user_version", VERSION)?;
            }
            self.connection.execute_batch("COMMIT")?;
            Ok(())
        });
        if made.is_err() {
            self.roll_back();
        }
        made
    }

    fn check_whole(&self) -> Result<(), Trouble> {
        let first = self
            .connection
            .query_row("PRAGMA quick_check(1)", (), |row| row.get::<_, String>(0))?;
        match first.as_str() {
            "ok" => Ok(()),
            problem => Err(Trouble::Final(format!(
                "it is damaged ({problem}); replace it from a backup, or remove it"
            ))),
        }
    }

    /// Begins a transaction that writes. `Ok(false)`: another writer holds the file.
    pub(super) fn begin(&self) -> Result<bool, StoreError> {
        self.check_in_place()?;
        match self
            .connection
            .prepare_cached("BEGIN IMMEDIATE")
            .and_then(|mut begin| begin.execute(()))
        {
            Ok(_) => Ok(true),
            Err(error) if is_busy(&error) => Ok(false),
            Err(error) => Err(unavailable(&error)),
        }
    }

    /// Ends whatever transaction there is, without effect.
    pub(super) fn roll_back(&self) {
        if !self.connection.is_autocommit() {
            // Where even that fails, the next transaction cannot begin, and says so.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }

    /// Copies from the log what can be copied without waiting for anybody.
    pub(super) fn checkpoint(&self) {
        // One that cannot be done now is done next time.
        let _ = self
            .connection
            .query_row("PRAGMA wal_checkpoint(PASSIVE)", (), |_| Ok(()));
    }

    /// Whether the path still leads to the file that is open: where somebody has put another in its place, new
    /// processes would agree on other things than this one.
    pub(super) fn check_in_place(&self) -> Result<(), StoreError> {
        let there = std::fs::metadata(&self.path).ok().as_ref().and_then(identity);
        if there == self.identity {
            return Ok(());
        }
        let path = self.path.display();
        Err(StoreError::Unavailable(format!(
            "{path} was removed or replaced while it was in use; stop all its users before you do that"
        )))
    }
}

/// Something that can be tried again, or not.
enum Trouble {
    Busy,
    Final(String),
}

impl Trouble {
    fn of(error: &rusqlite::Error, kind: Kind) -> Self {
        if is_busy(error) {
            Trouble::Busy
        } else {
            Trouble::Final(explain(error, kind))
        }
    }
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        Trouble::of(&error, Kind::Records)
    }
}

fn patiently<T>(until: Instant, mut act: impl FnMut() -> Result<T, Trouble>) -> Result<T, String> {
    loop {
        match act() {
            Ok(done) => return Ok(done),
            Err(Trouble::Final(problem)) => return Err(problem),
            Err(Trouble::Busy) if Instant::now() >= until => {
                return Err("another process holds it and does not let go".to_owned());
            }
            Err(Trouble::Busy) => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}

fn explain(error: &rusqlite::Error, kind: Kind) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => {
            format!(
                "it is no SQLite file, so it cannot be a {}; nothing in it was changed",
                kind.name()
            )
        }
        Some(ErrorCode::DatabaseCorrupt) => {
            format!("it is damaged ({error}); replace it from a backup, or remove it")
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => format!("it cannot be written ({error})"),
        Some(ErrorCode::CannotOpen) => format!(
            "it cannot be opened, or not be made ({error}); name a file of its own, in a folder where this program may write \
             it and the two beside it that end in -wal and -shm"
        ),
        _ => error.to_string(),
    }
}

pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

pub(super) fn unavailable(error: &rusqlite::Error) -> StoreError {
    StoreError::Unavailable(error.to_string())
}

#[cfg(unix)]
fn identity(metadata: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((metadata.dev(), metadata.ino()))
}

/// Elsewhere a file that is open cannot be replaced.
#[cfg(not(unix))]
fn identity(_: &Metadata) -> Option<(u64, u64)> {
    None
}

/// On a network filesystem the locks and the shared memory of different machines do not meet: a file there would be
/// damaged, or two machines would each believe to be alone.
#[cfg(target_os = "linux")]
fn refuse_network(path: &Path) -> Result<(), String> {
    let found = rustix::fs::statfs(path).map_err(|error| format!("its filesystem cannot be told: {error}"))?;
    match network_name(found.f_type) {
        None => Ok(()),
        Some(name) => Err(format!(
            "it is on a network filesystem ({name}), where SQLite's locks do not hold; choose a local disk"
        )),
    }
}

/// Elsewhere it is the user's to know: SQLite itself cannot tell.
#[cfg(not(target_os = "linux"))]
fn refuse_network(_: &Path) -> Result<(), String> {
    Ok(())
}

#[cfg(target_os = "linux")]
fn network_name(magic: impl TryInto<i64>) -> Option<&'static str> {
    // The kernel's numbers have 32 bits; on some machines they come with the sign of the highest.
    let magic = magic.try_into().ok()? & 0xffff_ffff;
    Some(match magic {
        0x6969 => "NFS",
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => "SMB",
        0x5346_414f | 0x6b41_4653 => "AFS",
        0x0102_1997 => "9P",
        0x00c3_6400 => "Ceph",
        0x0bd0_0bd0 => "Lustre",
        0x4750_4653 => "GPFS",
        0x0116_1970 => "GFS2",
        0x7461_636f => "OCFS2",
        0x7375_7245 => "Coda",
        0x564c => "NCP",
        0x2003_0528 => "OrangeFS",
        0x6573_5546 => "FUSE",
        _ => return None,
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::network_name;

    #[test]
    fn network_filesystems_are_known_by_their_numbers() {
        for (magic, name) in [
            (0x6969_i64, "NFS"),
            (0xff53_4d42, "SMB"),
            (-11_317_950, "SMB"),
            (0x6573_5546, "FUSE"),
        ] {
            assert_eq!(network_name(magic), Some(name), "{magic:#x}");
        }
        for local in [
            0xef53_i64,
            0x0102_1994,
            0x9123_683e,
            0x5846_5342,
            0x794c_7630,
            0x2fc1_2fc1,
        ] {
            assert_eq!(network_name(local), None, "{local:#x}");
        }
    }
}
