//! What the tests stand on: a store that several processes share, and the processes. Whatever happens, they end with it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tempfile::TempDir;
use zlink_runtime::location::{Key, LocationStore, RedisStore, Scan, Scanned, SqliteStore, Stored};

use crate::journal::{self, Entry};
use crate::node::Timing;
use crate::process::Process;
use crate::server::Server;

/// How long anything may take that must happen; only failing tests wait that long.
pub(crate) const LIMIT: Duration = Duration::from_secs(90);

/// A store that processes share.
pub(crate) enum Shared {
    Sqlite,
    Redis(Server),
}

impl Shared {
    pub(crate) fn redis() -> Self {
        Self::Redis(Server::new())
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Shared::Sqlite => "SQLite",
            Shared::Redis(_) => "Redis",
        }
    }
}

pub(crate) struct Stage {
    pub(crate) shared: Shared,
    folder: TempDir,
    timing: Timing,
}

impl Stage {
    pub(crate) fn new(shared: Shared, timing: Timing) -> Self {
        println!("{}", shared.name());
        let folder = TempDir::new().unwrap();
        Self { shared, folder, timing }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("spots.db")
    }

    fn address(&self) -> String {
        match &self.shared {
            Shared::Sqlite => format!("sqlite://{}", self.file().display()),
            Shared::Redis(server) => format!("{}?namespace=spots", server.address()),
        }
    }

    /// A process that has Spots.
    pub(crate) fn start(&self, name: &str) -> Node {
        self.start_as(name, "free")
    }

    /// The same, whose factories wait.
    pub(crate) fn start_held(&self, name: &str) -> Node {
        self.start_as(name, "held")
    }

    fn start_as(&self, name: &str, held: &str) -> Node {
        let journal = self.folder.path().join(name);
        let timing = format!("{:?}", self.timing);
        let arguments = [name, &self.address(), journal.to_str().unwrap(), &timing, held];
        let mut process = Process::start("node", &arguments);
        process.line_within("started", LIMIT);
        Node {
            process,
            journal,
            asked: 0,
            answers: BTreeMap::new(),
        }
    }

    /// All that begins with `prefix` in the store.
    pub(crate) async fn stored(&self, prefix: &str) -> Vec<(Key, Stored)> {
        let store: Box<dyn LocationStore> = match &self.shared {
            Shared::Sqlite => Box::new(SqliteStore::open(self.file()).await.unwrap()),
            Shared::Redis(server) => Box::new(RedisStore::open(&server.address(), "spots").await.unwrap()),
        };
        match store.scan(&Scan::new(prefix, 1000).unwrap()).await.unwrap() {
            Scanned::Page(page) => page.entries,
            Scanned::Expired => panic!("a first page is never expired"),
        }
    }

    pub(crate) fn lease_ends_for_others(&self) -> Duration {
        let times = self.timing.times();
        times.lease_ttl + times.fencing_margin
    }
}

/// How an order ended.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// `ok`, or the kind of the error.
    pub(crate) kind: String,
    /// What came, or whether it may have run, and what the error says.
    pub(crate) text: String,
    pub(crate) took: Duration,
}

impl Answer {
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.kind, "ok", "{self:?}");
        self.text
    }

    #[track_caller]
    pub(crate) fn failed(&self, kind: &str) {
        assert_eq!(self.kind, kind, "{self:?}");
    }
}

/// A process with Spots. Dropping it ends it, even where it is stopped.
pub(crate) struct Node {
    pub(crate) process: Process,
    journal: PathBuf,
    asked: u64,
    answers: BTreeMap<u64, Answer>,
}

impl Node {
    /// Gives an order, and does not wait for it.
    pub(crate) fn begin(&mut self, order: &str) -> u64 {
        self.asked += 1;
        self.process.say(&format!("{} {order}", self.asked));
        self.asked
    }

    /// Waits for the answer to an order.
    pub(crate) fn answer(&mut self, number: u64) -> Answer {
        loop {
            if let Some(answer) = self.answers.remove(&number) {
                return answer;
            }
            let line = self.process.any_line(LIMIT);
            let words: Vec<&str> = line.splitn(4, ' ').collect();
            let [number, took, kind, text] = words[..] else {
                panic!("{line:?}");
            };
            let answer = Answer {
                kind: kind.to_owned(),
                text: text.to_owned(),
                took: Duration::from_millis(took.parse().unwrap()),
            };
            self.answers.insert(number.parse().unwrap(), answer);
        }
    }

    pub(crate) fn ask(&mut self, order: &str) -> Answer {
        let number = self.begin(order);
        self.answer(number)
    }

    /// Gives the order until it is obeyed, and then says how long that took.
    #[track_caller]
    pub(crate) fn insist(&mut self, order: &str) -> (String, Duration) {
        let began = Instant::now();
        loop {
            let answer = self.ask(order);
            if answer.kind == "ok" {
                return (answer.text, began.elapsed());
            }
            assert!(began.elapsed() < LIMIT, "{order}: {answer:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until its status has all of `parts`.
    #[track_caller]
    pub(crate) fn until_it_is(&mut self, parts: &str) {
        let began = Instant::now();
        loop {
            let status = self.ask("status").ok();
            if status.contains(parts) {
                return;
            }
            assert!(began.elapsed() < LIMIT, "{status}, and not {parts}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// What ran in it so far.
    pub(crate) fn ran(&self) -> Vec<Entry> {
        journal::read(&self.journal)
    }

    /// How often that line was written so far.
    pub(crate) fn count(&self, what: &str) -> usize {
        self.ran().iter().filter(|entry| entry.what == what).count()
    }

    /// Waits until a line was written after `since` that holds that.
    #[track_caller]
    pub(crate) fn until_it_ran(&self, what: &str, since: Duration) {
        let began = Instant::now();
        let is = |entry: &Entry| entry.at > since && entry.what.contains(what);
        while !self.ran().iter().any(is) {
            assert!(began.elapsed() < LIMIT, "{what:?} did not run: {:?}", self.ran());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Stops it, and says since when it stands still.
    pub(crate) fn stop(&self) -> Duration {
        self.process.signal(Signal::STOP);
        let began = Instant::now();
        while !self.process.is_stopped() {
            assert!(began.elapsed() < LIMIT, "it does not stop");
        }
        journal::now()
    }

    pub(crate) fn go_on(&self) {
        self.process.signal(Signal::CONT);
    }

    pub(crate) fn shut_down(mut self) {
        self.ask("shutdown").ok();
        self.process.end();
    }
}

/// Waits until all are linked with all others.
pub(crate) fn linked(nodes: &mut [Node]) {
    let others = nodes.len() - 1;
    for node in nodes {
        node.until_it_is(&format!("peers={others}"));
    }
}
