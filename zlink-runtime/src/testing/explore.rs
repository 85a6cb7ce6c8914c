//! One test on many seeds, on all cores, and the command that repeats the one that failed.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;

use super::Cluster;
use crate::transport::simulated::Network;

/// Repeats one seed.
const ONE: &str = "ZLINK_SIM_SEED";
/// Tries other seeds: how many, or from which to which, as `5000..9000`.
const OTHERS: &str = "ZLINK_SIM_SEEDS";
/// No test is expected to take longer than that, in virtual time: what hangs ends here.
const FOREVER: Duration = Duration::from_secs(24 * 3600);

/// Runs `test` with the seeds 0 to `seeds`, each with a cluster of its own in a runtime of its own, side by side on all
/// cores. The environment may choose other seeds: `ZLINK_SIM_SEEDS=100000` or `ZLINK_SIM_SEEDS=5000..9000`; or the one
/// that is to be repeated: `ZLINK_SIM_SEED=4711`.
///
/// # Panics
/// Where `test` panics, or hangs: with the seed, and the command that repeats it.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use zlink_runtime::testing::explore;
///
/// explore(20, async |cluster| {
///     for (name, other) in [("one", "two"), ("two", "one")] {
///         cluster.node(name, move |host| {
///             host.mesh("shop", |mesh| {
///                 mesh.rid(name).listen(format!("tcp://{name}:1")).connect(format!("tcp://{other}:1"))
///             })
///         });
///     }
///     cluster.start_all().await.unwrap();
///     cluster.ready(Duration::from_secs(5)).await;
///     cluster.network().break_connections("one", "two", false);
///     cluster.advance(Duration::from_millis(10)).await;
///     cluster.ready(Duration::from_secs(5)).await;
/// });
/// ```
#[track_caller]
#[allow(clippy::panic, reason = "that is how a test fails")]
pub fn explore(seeds: u64, test: impl AsyncFn(Cluster) + Sync) {
    let range = match chosen(seeds) {
        Ok(range) => range,
        Err(problem) => panic!("{problem}"),
    };
    let threads = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let next = AtomicU64::new(range.start);
    let failed = Mutex::new(None::<(u64, String)>);
    let name = thread::current().name().unwrap_or("main").to_owned();
    thread::scope(|scope| {
        for _ in 0..threads.min(usize::try_from(range.end - range.start).unwrap_or(usize::MAX)) {
            let work = || {
                while failed.lock().is_none() {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= range.end {
                        return;
                    }
                    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(seed, &test))) {
                        failed.lock().get_or_insert((seed, text(&*panic)));
                    }
                }
            };
            let spawned = thread::Builder::new().name(name.clone()).spawn_scoped(scope, work);
            assert!(spawned.is_ok(), "no thread to run in: {spawned:?}");
        }
    });
    if let Some((seed, problem)) = failed.into_inner() {
        panic!(
            "{problem}\n\nseed {seed} fails; repeat it with\n\n    {}\n",
            again(seed, &name)
        );
    }
}

#[allow(clippy::panic, reason = "that is how a test fails")]
fn run(seed: u64, test: &impl AsyncFn(Cluster)) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => panic!("no runtime: {error}"),
    };
    runtime.block_on(async {
        let cluster = Cluster::new(seed);
        let _traced = Traced(cluster.network().clone());
        let ended = tokio::time::timeout(FOREVER, test(cluster.clone())).await;
        assert!(ended.is_ok(), "it hangs\n{}", cluster.report());
    });
}

/// Prints what happened where a repeated run fails.
struct Traced(Network);

impl Drop for Traced {
    fn drop(&mut self) {
        if thread::panicking() && std::env::var_os(ONE).is_some() {
            for event in self.0.trace() {
                println!("{event}");
            }
        }
    }
}

fn chosen(seeds: u64) -> Result<Range<u64>, String> {
    let number = |name: &str, text: &str| {
        let number = text.trim().parse::<u64>();
        number.map_err(|_| format!("{name} is no number, nor two with `..` between: {text:?}"))
    };
    if let Ok(one) = std::env::var(ONE) {
        let seed = number(ONE, &one)?;
        return Ok(seed..seed.saturating_add(1));
    }
    match std::env::var(OTHERS) {
        Ok(others) => match others.split_once("..") {
            Some((from, to)) => Ok(number(OTHERS, from)?..number(OTHERS, to)?),
            None => Ok(0..number(OTHERS, &others)?),
        },
        Err(_) => Ok(0..seeds),
    }
}

fn text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "it panicked".to_owned())
}

/// What repeats a seed of the test that runs.
fn again(seed: u64, test: &str) -> String {
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let program = std::env::args().next().unwrap_or_default();
    let stem = Path::new(&program).file_stem().unwrap_or_default().to_string_lossy();
    // Cargo adds a hash to the name of the binary.
    let binary = stem.rsplit_once('-').map_or(&*stem, |(binary, _)| binary);
    let target = if binary == package.replace('-', "_") {
        "--lib".to_owned()
    } else {
        format!("--test {binary}")
    };
    format!("{ONE}={seed} cargo test -p {package} --all-features {target} -- --exact {test}")
}
