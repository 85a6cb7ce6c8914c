//! Which store the clusters of a test share: their own, in memory, or one out of this process.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use zlink_runtime::HostBuilder;
use zlink_runtime::location::{BlobStore, LocationStore};
use zlink_runtime::testing::Cluster;

pub(crate) use crate::shared_far::Far;

thread_local! {
    /// What the nodes of the test on this thread share, where it is not their cluster's own store.
    static FAR: RefCell<Weak<Far>> = const { RefCell::new(Weak::new()) };
}

/// From here on, and for as long as somebody keeps it, clusters of this thread have that store.
pub(crate) fn choose(far: Option<Arc<Far>>) -> Option<Arc<Far>> {
    FAR.set(far.as_ref().map_or_else(Weak::new, Arc::downgrade));
    far
}

fn chosen() -> Option<Arc<Far>> {
    FAR.with_borrow(Weak::upgrade)
}

/// Lets a host use the store of its cluster, as the node `name`: with the faults of the cluster.
pub(crate) fn with_store(cluster: &Cluster, name: &str) -> impl Fn(HostBuilder) -> HostBuilder + Send + Sync + use<> {
    let near = cluster.store(name);
    let far = chosen().map(|far| far.open(name, &cluster.store_faults(name)));
    move |host| match &far {
        None => host.location_store(near.clone()),
        Some((store, blobs)) => host.location_store(store.clone()).relocation_store(blobs.clone()),
    }
}

/// The same store, for somebody who looks on.
pub(crate) fn observer(cluster: &Cluster) -> (Arc<dyn LocationStore>, Arc<dyn BlobStore>) {
    let name = "observer";
    match chosen().map(|far| far.open(name, &cluster.store_faults(name))) {
        None => (Arc::new(cluster.store(name)), Arc::new(cluster.store(name))),
        Some((store, blobs)) => (Arc::new(store), Arc::new(blobs)),
    }
}
