//! What this process takes: bytes, threads, tasks.

use std::fs;

use crate::Failure;

/// The memory of this process.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Bytes that the allocator has given out, its own overhead included.
    pub allocated: f64,
    /// Bytes that the system keeps for it.
    pub resident: f64,
}

impl Memory {
    pub fn now() -> Result<Self, Failure> {
        // SAFETY: the call takes nothing and returns plain numbers.
        let heap = unsafe { libc::mallinfo2() };
        let status = fs::read_to_string("/proc/self/status")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("status has no VmRSS")?;
        let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(Self { allocated: (heap.uordblks + heap.hblkhd) as f64, resident: kilobytes * 1024.0 })
    }

    /// By how much it has grown since.
    pub fn grown(self) -> Result<Self, Failure> {
        let now = Self::now()?;
        Ok(Self { allocated: now.allocated - self.allocated, resident: now.resident - self.resident })
    }
}

/// What runs in this process beside its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    threads: usize,
    tasks: usize,
}

impl Running {
    /// Threads of the process, and tasks of the runtime that this is called on.
    pub fn now() -> Result<Self, Failure> {
        let threads = fs::read_dir("/proc/self/task")?.count();
        Ok(Self { threads, tasks: tokio::runtime::Handle::current().metrics().num_alive_tasks() })
    }

    /// The same with so many tasks more.
    pub fn and_tasks(mut self, more: usize) -> Self {
        self.tasks += more;
        self
    }

    /// Fails where there are more by now.
    pub fn is_all(self, objects: usize) -> Result<(), Failure> {
        let now = Self::now()?;
        if now.threads > self.threads || now.tasks > self.tasks {
            return Err(format!("{objects} idle objects: {self:?} before, {now:?} with them").into());
        }
        Ok(())
    }
}
