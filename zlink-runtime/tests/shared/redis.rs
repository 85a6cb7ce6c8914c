//! A Redis server of a test's own, on a free port, that ends with it.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tempfile::TempDir;

pub(crate) struct Server {
    folder: TempDir,
    port: u16,
    process: Child,
}

/// What the server needs to be a store.
pub(crate) const AS_A_STORE: &[&str] = &["--appendonly", "yes", "--appendfsync", "always"];

fn program() -> &'static str {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/redis-server");
        let found = Command::new(script).stderr(Stdio::inherit()).output().unwrap();
        assert!(
            found.status.success(),
            "there is no redis-server, and none can be installed"
        );
        String::from_utf8(found.stdout).unwrap().trim().to_owned()
    })
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}

/// Where a server has a clock of the day of its own, the file that says what it is.
const DAY: &str = "day";

/// What a program loads before libc to have such a clock.
fn clock() -> &'static Path {
    static CLOCK: OnceLock<PathBuf> = OnceLock::new();
    CLOCK.get_or_init(|| {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/shared/day.c");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        // Others may build it meanwhile.
        let (built, clock) = (
            folder.join(format!("day-{}.so", std::process::id())),
            folder.join("day.so"),
        );
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let mut build = Command::new(compiler);
        build.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&built).arg(source);
        assert!(build.status().unwrap().success(), "the clock does not build");
        std::fs::rename(built, &clock).unwrap();
        clock
    })
}

fn start(folder: &Path, port: u16, options: &[&str]) -> Option<Child> {
    let mut process = Command::new(program());
    let day = folder.join(DAY);
    if day.exists() {
        process.env("LD_PRELOAD", clock()).env("ZLINK_TEST_DAY", day);
    }
    let mut process = process
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
        .arg("--dir")
        .arg(folder)
        .args(options)
        .stdout(Stdio::null())
        // One that outlives its test must not hold its output open.
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        if process.try_wait().unwrap().is_some() {
            // Somebody else took the port.
            return None;
        }
        if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Some(process);
        }
        assert!(Instant::now() < until, "the server does not come up");
        std::thread::sleep(Duration::from_millis(5));
    }
}

impl Server {
    pub(crate) fn new() -> Self {
        Self::with(AS_A_STORE)
    }

    /// A server whose clock of the day is what the file says: microseconds since 1970, in the byte order of this machine.
    pub(crate) fn with_clock(micros: u64) -> (Self, File) {
        let folder = TempDir::new().unwrap();
        let day = folder.path().join(DAY);
        std::fs::write(&day, micros.to_ne_bytes()).unwrap();
        let day = File::options().write(true).open(day).unwrap();
        (Self::within(folder, AS_A_STORE), day)
    }

    pub(crate) fn with(options: &[&str]) -> Self {
        Self::within(TempDir::new().unwrap(), options)
    }

    fn within(folder: TempDir, options: &[&str]) -> Self {
        for _ in 0..20 {
            let port = free_port();
            if let Some(process) = start(folder.path(), port, options) {
                return Self { folder, port, process };
            }
        }
        panic!("no server starts");
    }

    pub(crate) fn address(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn process(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.process)
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts again after a [kill](Self::kill), on what is left in its folder.
    pub(crate) fn start(&mut self) {
        let until = Instant::now() + Duration::from_secs(60);
        while Instant::now() < until {
            if let Some(process) = start(self.folder.path(), self.port, AS_A_STORE) {
                self.process = process;
                return;
            }
        }
        panic!("it does not start again");
    }

    /// As an operator would.
    pub(crate) async fn command(&self, words: &[&str]) {
        let client = redis::Client::open(self.address()).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.exec_async(&mut connection).await.unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
