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

    /// A place for one thing, which is taken and put by one swap each.
    pub(crate) struct Place<T>(crossbeam_utils::atomic::AtomicCell<Option<Box<T>>>);

    impl<T> Place<T> {
        pub(crate) fn new(thing: Box<T>) -> Self {
            Self(crossbeam_utils::atomic::AtomicCell::new(Some(thing)))
        }

        /// Takes what is there.
        pub(crate) fn take(&self) -> Option<Box<T>> {
            self.0.take()
        }

        /// Puts a thing there; what was there comes back.
        pub(crate) fn put(&self, thing: Box<T>) -> Option<Box<T>> {
            self.0.swap(Some(thing))
        }
    }
}

/// The same for the model checkers, which know no swap of pointers.
#[cfg(any(zlink_loom, zlink_shuttle))]
pub(crate) struct Place<T>(Mutex<Option<Box<T>>>);

#[cfg(any(zlink_loom, zlink_shuttle))]
impl<T> Place<T> {
    pub(crate) fn new(thing: Box<T>) -> Self {
        Self(Mutex::new(Some(thing)))
    }

    pub(crate) fn take(&self) -> Option<Box<T>> {
        lock(&self.0).take()
    }

    pub(crate) fn put(&self, thing: Box<T>) -> Option<Box<T>> {
        lock(&self.0).replace(thing)
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

#[cfg(not(any(zlink_loom, zlink_shuttle)))]
pub(crate) use imp::Place;
#[allow(unused_imports, reason = "each cargo feature and model run uses its own part")]
pub(crate) use imp::{Arc, Mutex, MutexGuard, atomic, lock};
