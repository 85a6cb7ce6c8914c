//! What hosts leave in `tracing`, as far as this thread made it: tests run on a runtime of one thread, so that is
//! everything their own hosts did, and nothing of others.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Once};

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{DefaultGuard, Interest};
use tracing::{Event, Metadata, Subscriber};

/// Collects the events of this thread until it is dropped.
pub(crate) struct Events {
    lines: Arc<Mutex<Vec<String>>>,
    _guard: DefaultGuard,
}

struct Collector(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let _ = write!(self.0, " {}={value}", field.name());
    }
}

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("zlink")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().target().to_owned());
        event.record(&mut line);
        if std::env::var_os("SHOW").is_some() {
            println!("{:?} {}", std::time::Instant::now(), line.0);
        }
        self.0.lock().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// For threads that collect nothing. `tracing` asks the thread that comes to an event first whether anybody wants it, and
/// keeps a "never" for all threads; with this one the answer is "ask again".
struct Nobody;

impl Subscriber for Nobody {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, _: &Metadata<'_>) -> bool {
        false
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Events {
    pub(crate) fn collect() -> Self {
        static FIRST: Once = Once::new();
        FIRST.call_once(|| tracing::subscriber::set_global_default(Nobody).expect("no other subscriber"));
        let lines = Arc::default();
        let guard = tracing::subscriber::set_default(Collector(Arc::clone(&lines)));
        Self { lines, _guard: guard }
    }

    /// How many events have all of these texts in them.
    pub(crate) fn count(&self, parts: &[&str]) -> usize {
        let lines = self.lines.lock();
        lines
            .iter()
            .filter(|line| parts.iter().all(|part| line.contains(part)))
            .count()
    }

    /// What the events that have all of these texts in them say in the field `name`, in their order.
    pub(crate) fn field(&self, parts: &[&str], name: &str) -> Vec<Option<String>> {
        let lines = self.lines.lock();
        let found = lines.iter().filter(|line| parts.iter().all(|part| line.contains(part)));
        let name = format!(" {name}=");
        let value = |line: &String| {
            let (_, rest) = line.split_once(&name)?;
            Some(rest.split(' ').next().unwrap_or(rest).to_owned())
        };
        found.map(value).collect()
    }

    /// Waits for an event with all of these texts in it.
    #[track_caller]
    pub(crate) fn heard(&self, parts: &'static [&'static str]) -> impl Future<Output = ()> + use<> {
        let lines = self.lines.clone();
        super::until(&format!("an event with {parts:?}"), move || {
            lines
                .lock()
                .iter()
                .any(|line| parts.iter().all(|part| line.contains(part)))
        })
    }
}
