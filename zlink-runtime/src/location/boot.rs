//! The clock that leases are judged by: it runs on while the process is stopped and while the machine sleeps.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// A moment on a [`BootClock`]: the time since its beginning. Comparable only with moments of the same clock.
pub(crate) type BootTime = Duration;

/// The same in nanoseconds, as far as they reach: five centuries.
#[inline]
pub(crate) fn nanos(time: BootTime) -> u64 {
    let seconds = time.as_secs().saturating_mul(1_000_000_000);
    seconds.saturating_add(u64::from(time.subsec_nanos()))
}

/// A clock of this machine that neither a stopped process nor a sleeping machine holds up, and that nobody sets.
#[derive(Clone)]
pub struct BootClock(Source);

#[derive(Clone)]
enum Source {
    System,
    Injected(Arc<dyn Fn() -> Duration + Send + Sync>),
}

impl BootClock {
    /// The clock of the machine: `CLOCK_BOOTTIME` on Linux and Android, the monotonic clock elsewhere.
    #[must_use]
    pub const fn system() -> Self {
        Self(Source::System)
    }

    /// Follows tokio's clock, which tests may pause. For tests and simulations.
    #[must_use]
    pub fn of_tokio() -> Self {
        let start = Instant::now();
        Self::new(move || Instant::now().saturating_duration_since(start))
    }

    /// Asks `clock`, which must never go back. For tests and simulations: the renewal of leases then runs as a task of
    /// the host's runtime, and has no thread of its own.
    #[must_use]
    pub fn new(clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self(Source::Injected(Arc::new(clock)))
    }

    /// The time since this clock began.
    #[must_use]
    pub fn now(&self) -> Duration {
        match &self.0 {
            Source::System => system(),
            Source::Injected(clock) => clock(),
        }
    }

    /// Whether time passes by itself, so that a thread may wait for it.
    pub(crate) const fn is_system(&self) -> bool {
        matches!(self.0, Source::System)
    }
}

impl Default for BootClock {
    fn default() -> Self {
        Self::system()
    }
}

impl fmt::Debug for BootClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_system() {
            "BootClock(system)"
        } else {
            "BootClock(injected)"
        })
    }
}

fn system() -> Duration {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;
    let time = rustix::time::clock_gettime(CLOCK);
    // It counts up from the start of the machine, so neither part is ever negative.
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_clock_goes_on() {
        let clock = BootClock::system();
        let before = clock.now();
        assert!(before > Duration::ZERO);
        while clock.now() == before {}
        assert!(clock.now() > before);
    }

    #[tokio::test(start_paused = true)]
    async fn tokios_clock_can_be_paused() {
        let clock = BootClock::of_tokio();
        assert_eq!(clock.now(), Duration::ZERO);
        tokio::time::advance(Duration::from_secs(7)).await;
        assert_eq!(clock.now(), Duration::from_secs(7));
    }

    /// A lease in the store may name any time.
    #[test]
    fn a_moment_beyond_all_is_the_last() {
        assert_eq!(nanos(Duration::new(2, 5)), 2_000_000_005);
        assert_eq!(nanos(Duration::MAX), u64::MAX);
    }
}
