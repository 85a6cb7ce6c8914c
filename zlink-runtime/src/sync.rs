//! The synchronisation types that the model checkers replace: std's and parking_lot's, loom's or shuttle's.
//!
//! A module that is model-checked takes these from here and knows no tokio.

#[cfg(not(any(zlink_loom, zlink_shuttle)))]
mod imp {
    pub(crate) use parking_lot::{Mutex, MutexGuard};
    pub(crate) use std::sync::Arc;
    pub(crate) use std::sync::atomic;

    /// Locks; there is no poisoning.
    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock()
    }
}

#[cfg(zlink_loom)]
mod imp {
    pub(crate) use loom::sync::atomic;
    pub(crate) use loom::sync::{Arc, Mutex, MutexGuard};

    /// Locks; a model run ends at its first panic, so poisoning cannot be met.
    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(all(zlink_shuttle, not(zlink_loom)))]
mod imp {
    pub(crate) use shuttle::sync::atomic;
    pub(crate) use shuttle::sync::{Arc, Mutex, MutexGuard};

    /// Locks; a model run ends at its first panic, so poisoning cannot be met.
    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[allow(unused_imports, reason = "each cargo feature and model run uses its own part")]
pub(crate) use imp::{Arc, Mutex, MutexGuard, atomic, lock};
