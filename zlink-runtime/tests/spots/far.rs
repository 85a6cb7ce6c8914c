//! Stores out of this process for clusters in virtual time: SQLite files and Redis servers of a test's own.
//!
//! What a store does takes real time, in which tokio's paused clock would jump to the next timer. It does not while a
//! blocking task runs, so each operation is one: virtual time stands until the store has answered.

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::{Handle, Runtime};
use zlink_runtime::HostBuilder;
use zlink_runtime::location::{
    Batch, BlobPut, BlobRef, BlobRenewed, BlobStore, BoxFuture, Key, LocationStore, ReadMany, Scan, Scanned,
    StoreError, StoredBlob, Written,
};
use zlink_runtime::testing::{Cluster, Faulty};

use crate::kit::Provider;
use crate::shared::Shared;

thread_local! {
    /// What the nodes of the test on this thread share, where it is not their cluster's own store.
    static FAR: RefCell<Weak<Far>> = const { RefCell::new(Weak::new()) };
}

/// A store, and the runtime in which it is used.
pub(crate) struct Far {
    at: Shared,
    runtime: Option<Runtime>,
}

impl Drop for Far {
    fn drop(&mut self) {
        // A test ends within a runtime of its own, which must not wait for another.
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

/// From here on, and for as long as somebody keeps it, clusters of this thread have a store of that kind: a new one.
pub(crate) fn choose(provider: Provider) -> Option<Arc<Far>> {
    let at = match provider {
        Provider::Memory => None,
        Provider::Sqlite => Some(Shared::sqlite()),
        Provider::Redis => Some(Shared::redis()),
    };
    let far = at.map(|at| {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
        let runtime = Some(runtime);
        Arc::new(Far { at, runtime })
    });
    FAR.set(far.as_ref().map_or_else(Weak::new, Arc::downgrade));
    far
}

/// What the nodes of a test share, as the node `name` reaches it: with the faults of its cluster.
#[allow(clippy::type_complexity, reason = "the two of them")]
fn far(cluster: &Cluster, name: &str) -> Option<(Faulty<InTime<dyn LocationStore>>, Faulty<InTime<dyn BlobStore>>)> {
    let (store, blobs) = FAR.with_borrow(Weak::upgrade)?.open();
    let faults = cluster.store_faults(name);
    Some((
        Faulty::new(Arc::new(store), faults.clone()),
        Faulty::new(Arc::new(blobs), faults),
    ))
}

/// Lets a host use the store of its cluster, as the node `name`.
pub(crate) fn with_store(cluster: &Cluster, name: &str) -> impl Fn(HostBuilder) -> HostBuilder + Send + Sync + use<> {
    let (near, far) = (cluster.store(name), far(cluster, name));
    move |host| match &far {
        None => host.location_store(near.clone()),
        Some((store, blobs)) => host.location_store(store.clone()).relocation_store(blobs.clone()),
    }
}

/// The same store, for somebody who looks on.
pub(crate) fn observer(cluster: &Cluster) -> (Arc<dyn LocationStore>, Arc<dyn BlobStore>) {
    match far(cluster, "observer") {
        None => (Arc::new(cluster.store("observer")), Arc::new(cluster.store("observer"))),
        Some((store, blobs)) => (Arc::new(store), Arc::new(blobs)),
    }
}

impl Far {
    /// Handles of one host.
    fn open(&self) -> (InTime<dyn LocationStore>, InTime<dyn BlobStore>) {
        let handle = self.runtime.as_ref().unwrap().handle().clone();
        let (source, blobs) = (self.at.open(), self.at.blobs());
        let opening = {
            let handle = handle.clone();
            move || handle.block_on(async { (source.open().await.unwrap(), blobs.open().await.unwrap()) })
        };
        // On a thread that is in no runtime.
        let (store, blobs) = std::thread::spawn(opening).join().unwrap();
        (InTime(store, handle.clone()), InTime(blobs, handle))
    }
}

/// What answers before any virtual time passes.
struct InTime<S: ?Sized>(Arc<S>, Handle);

impl<S: ?Sized> Clone for InTime<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), self.1.clone())
    }
}

impl<S: ?Sized + fmt::Debug> fmt::Debug for InTime<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<S: ?Sized + Send + Sync + 'static> InTime<S> {
    fn answer<T, F>(&self, operation: impl FnOnce(Arc<S>) -> F + Send + 'static) -> BoxFuture<'static, T>
    where
        T: Send + 'static,
        F: Future<Output = T>,
    {
        let Self(store, handle) = self.clone();
        Box::pin(async move {
            let answering = tokio::task::spawn_blocking(move || handle.block_on(operation(store)));
            answering.await.unwrap()
        })
    }
}

impl LocationStore for InTime<dyn LocationStore> {
    fn read_many<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<ReadMany, StoreError>> {
        let keys = keys.to_vec();
        self.answer(|store| async move { store.read_many(&keys).await })
    }

    fn write<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Written, StoreError>> {
        let batch = batch.clone();
        self.answer(|store| async move { store.write(&batch).await })
    }

    fn scan<'a>(&'a self, scan: &'a Scan) -> BoxFuture<'a, Result<Scanned, StoreError>> {
        let scan = scan.clone();
        self.answer(|store| async move { store.scan(&scan).await })
    }
}

impl BlobStore for InTime<dyn BlobStore> {
    fn put<'a>(
        &'a self,
        reference: &'a BlobRef,
        bytes: Bytes,
        retention: Duration,
    ) -> BoxFuture<'a, Result<BlobPut, StoreError>> {
        let reference = reference.clone();
        self.answer(move |store| async move { store.put(&reference, bytes, retention).await })
    }

    fn get<'a>(&'a self, reference: &'a BlobRef) -> BoxFuture<'a, Result<Option<StoredBlob>, StoreError>> {
        let reference = reference.clone();
        self.answer(|store| async move { store.get(&reference).await })
    }

    fn renew<'a>(
        &'a self,
        reference: &'a BlobRef,
        retention: Duration,
    ) -> BoxFuture<'a, Result<BlobRenewed, StoreError>> {
        let reference = reference.clone();
        self.answer(move |store| async move { store.renew(&reference, retention).await })
    }

    fn delete<'a>(&'a self, reference: &'a BlobRef) -> BoxFuture<'a, Result<(), StoreError>> {
        let reference = reference.clone();
        self.answer(|store| async move { store.delete(&reference).await })
    }
}
