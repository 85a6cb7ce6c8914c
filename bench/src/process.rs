//! Processors, processor time, and the two processes of a remote measurement.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::Failure;

/// Where the two processes run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Both on one processor, each with one thread: what a request costs.
    One,
    /// Both on the same two processors with tokio's default runtime: what a user gets.
    Two,
    /// Each on a processor of its own, with one thread.
    Split,
}

/// Which of the two processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Caller,
    Server,
}

impl Mode {
    pub fn parse(text: &str) -> Result<Self, Failure> {
        match text {
            "1cpu" => Ok(Mode::One),
            "2cpu" => Ok(Mode::Two),
            "split" => Ok(Mode::Split),
            _ => Err(format!("no mode {text:?}").into()),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Mode::One => "1cpu",
            Mode::Two => "2cpu",
            Mode::Split => "split",
        }
    }

    /// Pins this process, which must have one thread yet, and makes its runtime.
    pub fn enter(self, side: Side) -> Result<tokio::runtime::Runtime, Failure> {
        match (self, side) {
            (Mode::One, _) | (Mode::Split, Side::Caller) => pin(&[0])?,
            (Mode::Two, _) => pin(&[0, 1])?,
            (Mode::Split, Side::Server) => pin(&[1])?,
        }
        let mut builder = match self {
            Mode::Two => tokio::runtime::Builder::new_multi_thread(),
            Mode::One | Mode::Split => tokio::runtime::Builder::new_current_thread(),
        };
        Ok(builder.enable_all().build()?)
    }
}

/// Keeps this process on these processors.
fn pin(processors: &[usize]) -> Result<(), Failure> {
    // SAFETY: a `cpu_set_t` is plain bits, of which all zero is the empty set; the call reads as many bytes as it is told.
    let result = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for processor in processors {
            libc::CPU_SET(*processor, &mut set);
        }
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    match result {
        0 => Ok(()),
        _ => Err(format!("cannot run on processors {processors:?}: {}", std::io::Error::last_os_error()).into()),
    }
}

/// The processor time of a process so far, all its threads, user and system.
#[derive(Clone, Copy)]
pub struct CpuClock(libc::clockid_t);

impl CpuClock {
    pub fn own() -> Self {
        Self(libc::CLOCK_PROCESS_CPUTIME_ID)
    }

    pub fn of(process: &Child) -> Result<Self, Failure> {
        let mut clock = 0;
        // SAFETY: the call writes one clock id where it is told.
        match unsafe { libc::clock_getcpuclockid(libc::pid_t::try_from(process.id())?, &raw mut clock) } {
            0 => Ok(Self(clock)),
            error => Err(std::io::Error::from_raw_os_error(error).into()),
        }
    }

    pub fn now(self) -> Result<Duration, Failure> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the call writes one time where it is told.
        match unsafe { libc::clock_gettime(self.0, &raw mut time) } {
            0 => Ok(Duration::new(u64::try_from(time.tv_sec)?, u32::try_from(time.tv_nsec)?)),
            _ => Err(std::io::Error::last_os_error().into()),
        }
    }
}

/// The serving process. It ends when this is dropped.
pub struct Server {
    child: Child,
    /// Where it listens.
    pub address: String,
    clock: CpuClock,
}

impl Server {
    /// Starts this program once more, as the server of `peer`.
    pub fn start(peer: &str, mode: Mode) -> Result<Self, Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["serve", peer, mode.name()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut address = String::new();
        BufReader::new(child.stdout.take().ok_or("the server has no output")?).read_line(&mut address)?;
        let clock = CpuClock::of(&child)?;
        let address = address.trim().to_owned();
        if address.is_empty() {
            return Err("the server ended before it listened".into());
        }
        Ok(Self { child, address, clock })
    }

    /// The processor time of both processes so far.
    pub fn cpu(&self) -> Result<Duration, Failure> {
        Ok(CpuClock::own().now()? + self.clock.now()?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its input ends, and with it the server; should it hang, it is no use any more.
        drop(self.child.stdin.take());
        for _ in 0..100 {
            if let Ok(Some(_)) = self.child.try_wait() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
