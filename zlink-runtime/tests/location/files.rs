//! SQLite files: which are opened, what is said of the others, and what a file does that somebody else holds.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tempfile::TempDir;
use zlink_runtime::location::{
    BlobRef, BlobStore, Key, LocationStore, SqliteBlobStore, SqliteStore, StoreError, Written,
};

use crate::kit::{batch, key, put, value, write};

async fn refusal(path: &Path) -> String {
    SqliteStore::open(path).await.unwrap_err().to_string()
}

/// A file with one record, closed.
async fn made(path: &Path) {
    let store = SqliteStore::open(path).await.unwrap();
    write(&store, &batch([], [put("a", "1")])).await.unwrap();
    drop(store);
    closed(path).await;
}

/// Its threads end by themselves. Where both connections close in the same moment, each leaves the log to the other and
/// it stays: the open files tell, and the next connection to close takes it along.
async fn closed(path: &Path) {
    let path = path.canonicalize().unwrap();
    let is_open = || {
        let files = std::fs::read_dir("/proc/self/fd").unwrap();
        files
            .flatten()
            .any(|file| std::fs::read_link(file.path()).is_ok_and(|to| to == path))
    };
    let until = Instant::now() + Duration::from_secs(20);
    while is_open() {
        assert!(Instant::now() < until, "the file is still open");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let last = Connection::open(&path).unwrap();
    last.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()))
        .unwrap();
}

#[tokio::test]
async fn what_is_written_outlives_its_process() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("s.db");
    made(&path).await;
    let store = SqliteStore::open(&path).await.unwrap();
    assert_eq!(value(&store, "a").await.unwrap().unwrap(), "1");
    let first = store.read(&key("a")).await.unwrap().found.unwrap().revision;
    assert!(write(&store, &batch([], [put("b", "1")])).await.unwrap() > Some(first));
}

#[tokio::test]
async fn a_file_that_is_none_of_ours_is_refused_and_left_alone() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    let text = path("text.db");
    std::fs::write(
        &text,
        "no database at all, but long enough to have a header of 100 bytes. ".repeat(9),
    )
    .unwrap();
    let foreign = path("foreign.db");
    Connection::open(&foreign)
        .unwrap()
        .execute_batch("CREATE TABLE songs(name)")
        .unwrap();
    let before = [std::fs::read(&text).unwrap(), std::fs::read(&foreign).unwrap()];
    assert!(
        refusal(&text).await.contains("no SQLite file"),
        "{}",
        refusal(&text).await
    );
    assert!(
        refusal(&foreign).await.contains("another program"),
        "{}",
        refusal(&foreign).await
    );
    assert_eq!(
        before,
        [std::fs::read(&text).unwrap(), std::fs::read(&foreign).unwrap()]
    );

    assert!(refusal(&path("none/s.db")).await.contains("does not exist"));
    assert!(refusal(folder.path()).await.contains("it is a folder"));
    // A file of the kernel's, beside which nobody makes another.
    let kernels = refusal(Path::new("/proc/version")).await;
    assert!(
        kernels.contains("\"/proc/version\": it cannot be") && kernels.contains("-wal"),
        "{kernels}"
    );

    let newer = path("newer.db");
    made(&newer).await;
    Connection::open(&newer)
        .unwrap()
        .pragma_update(None, "user_version", 2)
        .unwrap();
    assert!(refusal(&newer).await.contains("version 2"), "{}", refusal(&newer).await);

    let blobs = path("blobs.db");
    drop(SqliteBlobStore::open(&blobs).await.unwrap());
    assert!(
        refusal(&blobs).await.contains("relocation store"),
        "{}",
        refusal(&blobs).await
    );
}

#[tokio::test]
async fn a_damaged_file_is_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("s.db");
    let store = SqliteStore::open(&path).await.unwrap();
    for page in 0..64 {
        write(&store, &batch([], [put(format!("{page}"), vec![7; 4000])]))
            .await
            .unwrap();
    }
    drop(store);
    closed(&path).await;
    let mut bytes = std::fs::read(&path).unwrap();
    assert!(bytes.len() > 200_000);
    // The head is right, the pages are not.
    bytes[4096..150_000].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();
    let refusal = refusal(&path).await;
    assert!(refusal.contains("damaged"), "{refusal}");
}

/// REQ: LS-063
#[tokio::test]
async fn what_was_given_up_before_it_was_begun_is_not_begun() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("s.db");
    let store = SqliteStore::open(&path).await.unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    for name in ["first", "second"] {
        let change = batch([], [put(name, "x")]);
        let mut writing = Box::pin(write(&store, &change));
        begin(&mut writing).await;
    }
    other.execute_batch("ROLLBACK").unwrap();
    assert!(write(&store, &batch([], [put("later", "x")])).await.unwrap().is_some());
    for name in ["first", "second"] {
        assert_eq!(value(&store, name).await.unwrap(), None, "{name}");
    }
}

/// REQ: LS-065, LS-103
#[tokio::test]
async fn while_another_holds_the_file_reads_go_on_and_writes_end_in_time() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("s.db");
    let timeout = Duration::from_millis(300);
    let store = SqliteStore::open_with_timeout(&path, timeout).await.unwrap();
    write(&store, &batch([], [put("a", "1")])).await.unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let begun = Instant::now();
    let changes: Vec<_> = (0..5).map(|at| batch([], [put(format!("{at}"), "x")])).collect();
    let mut writes: Vec<_> = changes.iter().map(|change| store.write(change)).collect();
    for write in &mut writes {
        // Asked all at once, so that they wait together.
        let polled = std::future::poll_fn(|context| std::task::Poll::Ready(write.as_mut().poll(context).is_pending()));
        assert!(polled.await);
    }
    assert_eq!(value(&store, "a").await.unwrap().unwrap(), "1");
    for write in writes {
        let answer = write.await;
        assert!(matches!(answer, Err(StoreError::DeadlineExceeded(_))), "{answer:?}");
    }
    assert!(begun.elapsed() >= timeout);
    other.execute_batch("ROLLBACK").unwrap();
    let written = write(&store, &batch([], [put("later", "x")])).await.unwrap();
    assert!(written.is_some());
    // What ended so was not done, and is not done later.
    let keys: Vec<Key> = (0..5).map(|at| key(at.to_string())).collect();
    assert!(store.read_many(&keys).await.unwrap().found.iter().all(Option::is_none));
}

/// REQ: LS-103, LS-065
#[tokio::test]
async fn a_read_does_not_wait_for_a_write_that_waits() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("s.db");
    let store = SqliteStore::open_with_timeout(&path, Duration::from_secs(60))
        .await
        .unwrap();
    write(&store, &batch([], [put("a", "1")])).await.unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let change = batch([], [put("a", "2")]);
    let mut writing = store.write(&change);
    let polled = std::future::poll_fn(|context| std::task::Poll::Ready(writing.as_mut().poll(context).is_pending()));
    assert!(polled.await);
    let read = tokio::time::timeout(Duration::from_secs(10), value(&store, "a")).await;
    assert_eq!(read.expect("it waits for nobody").unwrap().unwrap(), "1");
    other.execute_batch("ROLLBACK").unwrap();
    assert!(matches!(writing.await, Ok(Written::Applied { .. })));
    assert_eq!(value(&store, "a").await.unwrap().unwrap(), "2");
}

#[tokio::test]
async fn a_file_that_was_replaced_in_use_is_used_no_longer() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("s.db");
    let store = SqliteStore::open(&path).await.unwrap();
    write(&store, &batch([], [put("a", "1")])).await.unwrap();
    std::fs::rename(&path, folder.path().join("elsewhere.db")).unwrap();
    for _ in 0..2 {
        let (written, read) = (
            store.write(&batch([], [put("a", "2")])).await,
            store.read(&key("a")).await,
        );
        let texts = [written.unwrap_err().to_string(), read.unwrap_err().to_string()];
        assert!(
            texts.iter().all(|text| text.contains("removed or replaced")),
            "{texts:?}"
        );
    }
}

/// A lease is renewed by such a batch: however much waits before it, it is not late for that.
///
/// REQ: LS-031, LS-103
#[tokio::test]
async fn an_urgent_batch_goes_before_all_that_wait() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("s.db");
    let store = SqliteStore::open_with_timeout(&path, Duration::from_secs(60))
        .await
        .unwrap();
    let before = write(&store, &batch([], [put("before", "x")])).await.unwrap().unwrap();
    // Nothing is written while another process holds the file.
    let mut holder = Connection::open(&path).unwrap();
    let held = holder
        .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
        .unwrap();
    let change = |name: String| batch([], [put(name, "x")]);
    let (ordinary, renewal) = (
        (0..400).map(|at| change(at.to_string())).collect::<Vec<_>>(),
        change("lease".to_owned()).urgent(),
    );
    // More than have room in the queue; the urgent one comes last of all.
    let mut waiting: Vec<_> = ordinary.iter().map(|batch| Box::pin(write(&store, batch))).collect();
    for write in &mut waiting {
        begin(write).await;
    }
    let mut renewing = Box::pin(write(&store, &renewal));
    begin(&mut renewing).await;
    held.rollback().unwrap();
    let renewed = renewing.await.unwrap().unwrap();
    // The one that had come first may have been on its way.
    let overtaken_by = renewed.get() - before.get() - 1;
    assert!(overtaken_by <= 1, "{renewed:?} after {before:?}");
    for write in waiting {
        assert!(write.await.unwrap().is_some());
    }
}

/// Polls a future that cannot end yet.
async fn begin<F: Future + Unpin>(future: &mut F) {
    std::future::poll_fn(|cx| {
        assert!(std::pin::Pin::new(&mut *future).poll(cx).is_pending());
        std::task::Poll::Ready(())
    })
    .await;
}

#[tokio::test]
async fn many_open_a_new_file_at_once() {
    // Whoever opens a file looks at it while others make its tables: many rounds, since one alone seldom meets that.
    for _ in 0..8 {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("s.db");
        let mut opening = tokio::task::JoinSet::new();
        for at in 0..12 {
            let path = path.clone();
            opening.spawn(async move {
                let store = SqliteStore::open(path).await.unwrap();
                write(&store, &batch([], [put(format!("{at}"), "x")]))
                    .await
                    .unwrap()
                    .unwrap()
            });
        }
        let mut revisions = opening.join_all().await;
        revisions.sort_unstable();
        revisions.dedup();
        assert_eq!(revisions.len(), 12);
    }
}

#[tokio::test]
async fn expired_blobs_leave_the_file() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("b.db");
    let store = SqliteBlobStore::open(&path).await.unwrap();
    for at in 0..20 {
        let name = BlobRef::new(format!("{at}")).unwrap();
        let _ = store
            .put(&name, vec![1; 10].into(), Duration::from_millis(1))
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let kept = Connection::open(&path)
        .unwrap()
        .query_row("SELECT count(*) FROM blobs", (), |row| row.get::<_, i64>(0));
    assert!(kept.unwrap() < 5);
}
