//! What ran in the processes of a test: each line is written before anything else is done, so it outlives a SIGKILL.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use zlink_runtime::location::BootClock;

/// Where one process writes.
pub(crate) struct Journal {
    file: File,
    clock: BootClock,
}

impl Journal {
    pub(crate) fn create(path: &Path) -> Self {
        Self {
            file: File::options().create(true).append(true).open(path).unwrap(),
            clock: BootClock::system(),
        }
    }

    pub(crate) fn write(&self, what: &str) {
        let line = format!("{} {what}\n", self.clock.now().as_nanos());
        // One call of the system: nothing comes between, and no kill leaves half of it.
        (&self.file).write_all(line.as_bytes()).unwrap();
    }
}

/// A line, and when it was written on the clock of the machine, which all processes share.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) at: Duration,
    pub(crate) what: String,
}

/// All lines of one process so far.
pub(crate) fn read(path: &Path) -> Vec<Entry> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let lines = text[..whole].lines().map(|line| {
        let (at, what) = line.split_once(' ').unwrap();
        Entry {
            at: Duration::from_nanos(at.parse().unwrap()),
            what: what.to_owned(),
        }
    });
    lines.collect()
}

/// Now, as journals say it.
pub(crate) fn now() -> Duration {
    BootClock::system().now()
}
