//! The conformance suite of store providers: named cases, which every provider passes, ours and others'.
//!
//! It knows the contract of [`location`](crate::location) and no provider. Say how your stores are opened, and run it:
//!
//! ```
//! # use std::{collections::HashMap, sync::{Arc, Mutex}};
//! use zlink_runtime::location::{BlobStore, BoxFuture, LocationStore, MemoryStore, StoreError};
//! use zlink_runtime::testing::store::{Provider, cases};
//!
//! #[derive(Default)]
//! struct Memory(Mutex<HashMap<String, MemoryStore>>);
//!
//! impl Provider for Memory {
//!     fn location(&self, namespace: &str) -> BoxFuture<'_, Result<Arc<dyn LocationStore>, StoreError>> {
//!         let store = self.0.lock().unwrap().entry(namespace.to_owned()).or_default().clone();
//!         Box::pin(async move { Ok(Arc::new(store) as _) })
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
//! for case in cases() {
//!     case.run(&Memory::default()).await.unwrap_or_else(|failure| panic!("{failure}"));
//! }
//! # });
//! ```
//!
//! Time must pass for it, on tokio's clock and on the store's: some cases wait for something to expire, a fraction of a
//! second long. A host in production has a shorter form that harms nothing: [`probe`](crate::location::probe).

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use uuid::Uuid;

use crate::location::{BlobStore, BoxFuture, LocationStore, StoreError};

mod batches;
mod blobs;
mod bounds;
mod kit;
mod pages;
mod values;

/// How the suite opens stores of the provider under test.
pub trait Provider: Send + Sync {
    /// Opens the namespace of that name, a short text of letters, digits and `-`. A name that was not opened before is
    /// an empty namespace; one that was is the same, through a connection of its own.
    ///
    /// # Errors
    /// What keeps it from being opened; the case fails.
    fn location(&self, namespace: &str) -> BoxFuture<'_, Result<Arc<dyn LocationStore>, StoreError>>;

    /// The same for blobs; `None` where the provider keeps none, and their cases pass.
    ///
    /// # Errors
    /// What keeps it from being opened; the case fails.
    fn blobs(&self, namespace: &str) -> BoxFuture<'_, Result<Option<Arc<dyn BlobStore>>, StoreError>> {
        let _ = namespace;
        Box::pin(async { Ok(None) })
    }
}

/// One promise of the contract.
#[derive(Clone, Copy)]
pub struct Case {
    name: &'static str,
    check: Check,
}

type Check = for<'a> fn(&'a Bench<'a>) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>;
type Verdict = Result<(), String>;

impl Case {
    /// What it is called, as a function would be.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Checks the provider, in a namespace of its own.
    ///
    /// # Errors
    /// What the provider did instead.
    pub async fn run(&self, provider: &dyn Provider) -> Result<(), Failure> {
        let namespace = format!("case-{}", Uuid::new_v4().simple());
        let bench = Bench { provider, namespace };
        (self.check)(&bench).await.map_err(|problem| Failure {
            case: self.name,
            problem,
        })
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// A promise that was broken.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{case}: {problem}")]
pub struct Failure {
    case: &'static str,
    problem: String,
}

crate::error::shown!(Failure);

impl Failure {
    /// The case that found it.
    #[must_use]
    pub const fn case(&self) -> &'static str {
        self.case
    }
}

/// The case of that name.
#[must_use]
pub fn case(name: &str) -> Option<Case> {
    cases().iter().find(|case| case.name == name).copied()
}

macro_rules! cases {
    ($($room:ident :: $name:ident),* $(,)?) => {
        /// Every case.
        #[must_use]
        pub fn cases() -> &'static [Case] {
            &[$(Case { name: stringify!($name), check: |bench| Box::pin($room::$name(bench)) }),*]
        }
    };
}

cases! {
    batches::conditions_decide,
    batches::a_conflict_changes_nothing,
    batches::revisions_increase_and_are_one_per_batch,
    batches::versions_never_recur,
    batches::readers_see_whole_batches,
    batches::no_update_is_lost,
    batches::a_dropped_future_leaves_all_or_nothing,
    values::what_is_written_is_read,
    values::keys_are_exact,
    values::one_observation_in_the_order_of_the_keys,
    values::values_are_their_own,
    values::expired_is_missing,
    values::time_never_goes_back,
    pages::pages_are_ordered_and_complete,
    pages::a_prefix_ends_where_it_ends,
    pages::pages_are_bounded,
    pages::a_page_shows_whole_batches,
    pages::a_foreign_cursor_is_refused,
    bounds::the_greatest_of_everything_is_taken,
    bounds::too_many_keys_are_refused,
    bounds::the_probe_passes_and_leaves_nothing,
    blobs::blobs_are_written_once,
    blobs::blobs_expire_unless_renewed,
    blobs::blobs_are_bounded,
}

/// What a case works at: the provider, and a namespace that nobody else uses.
struct Bench<'a> {
    provider: &'a dyn Provider,
    namespace: String,
}
