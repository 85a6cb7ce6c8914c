//! The clock of the day of this process, which its tests set: whoever asks the system what day it is asks here, since this
//! program has a `clock_gettime` and a `gettimeofday` (which SQLite asks) of its own, which take the place of libc's. All other
//! clocks are as they are.

#![allow(
    unsafe_code,
    reason = "the only way to another clock of the day for a whole process and none else is below the language"
)]

use std::ffi::{c_int, c_long, c_void};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::SystemTime;

use rustix::time::ClockId;

/// By how many seconds the clock of the day is ahead of the machine's.
static AHEAD: AtomicI64 = AtomicI64::new(0);

/// As C has it, on machines of 64 bits.
#[repr(C)]
pub(crate) struct Timespec {
    seconds: i64,
    nanos: c_long,
}

/// # Safety
/// As libc's: `time` is a place for one.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int {
    let (clock, ahead) = match clock {
        0 => (ClockId::Realtime, AHEAD.load(Ordering::Relaxed)),
        1 => (ClockId::Monotonic, 0),
        2 => (ClockId::ProcessCPUTime, 0),
        3 => (ClockId::ThreadCPUTime, 0),
        4 => (ClockId::MonotonicRaw, 0),
        5 => (ClockId::RealtimeCoarse, AHEAD.load(Ordering::Relaxed)),
        6 => (ClockId::MonotonicCoarse, 0),
        7 => (ClockId::Boottime, 0),
        _ => return -1,
    };
    // Straight from the kernel, not by way of libc.
    let now = rustix::time::clock_gettime(clock);
    let now = Timespec {
        seconds: now.tv_sec + ahead,
        nanos: now.tv_nsec,
    };
    // SAFETY: whoever calls gives a place for it.
    unsafe { time.write(now) };
    0
}

/// As C has it, on machines of 64 bits.
#[repr(C)]
pub(crate) struct Timeval {
    seconds: i64,
    micros: c_long,
}

/// # Safety
/// As libc's: `time` is a place for one, or null. Nobody asks for the time zone any more.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn gettimeofday(time: *mut Timeval, _zone: *mut c_void) -> c_int {
    let now = rustix::time::clock_gettime(ClockId::Realtime);
    let now = Timeval {
        seconds: now.tv_sec + AHEAD.load(Ordering::Relaxed),
        micros: now.tv_nsec / 1000,
    };
    if !time.is_null() {
        // SAFETY: whoever calls gives a place for it.
        unsafe { time.write(now) };
    }
    0
}

/// Puts the clock of the day that many seconds ahead of the machine's, or behind where that is less than 0.
pub(crate) fn set(ahead: i64) {
    let before = SystemTime::now();
    let jump = ahead - AHEAD.swap(ahead, Ordering::Relaxed);
    let now = SystemTime::now();
    let jumped = match now.duration_since(before) {
        Ok(forwards) => forwards.as_secs_f64(),
        Err(backwards) => -backwards.duration().as_secs_f64(),
    };
    #[allow(clippy::cast_precision_loss, reason = "a few hours")]
    let off = (jumped - jump as f64).abs();
    assert!(
        off < 60.0,
        "told to jump {jump} s, the clock of the day jumped {jumped} s"
    );
}
