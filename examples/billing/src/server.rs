//! One server: a node of the mesh `shop` that takes charges, and does what its administrator asks.
//!
//! It knows nothing of the play, and of its peers only what the Location Store tells. The first line of its output is its RID;
//! while it is under pressure it says how much, in further lines.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};
use zlink_runtime::JobQueueStatus;
use zlink_runtime::prelude::*;

use crate::billing::{self, AuditNote, Charge, Done, Drain, GetPressure, Pressure, Receipt, SlowDown};

/// How long a charge takes: what a bank would need.
const CHARGE: Duration = Duration::from_millis(20);
/// How many charges the bank takes from one server at once.
const AT_ONCE: usize = 128;
/// Between two words about the pressure.
const SAY: Duration = Duration::from_millis(250);
/// How many jobs may wait in one server before its peers have to.
const PERMITS: u32 = 64;

/// Both services of a node share it.
#[derive(Clone)]
struct Server(Arc<State>);

struct State {
    name: String,
    /// One line for everything that runs here, written before anything else is done: what is in it after a SIGKILL ran.
    journal: File,
    bank: watch::Sender<Bank>,
    pressure: watch::Receiver<Pressure>,
    drain: Notify,
}

/// How long charges take, and until when.
struct Bank {
    charge: Duration,
    until: Instant,
}

impl State {
    fn write(&self, what: &str, order: u64) -> std::io::Result<()> {
        // One call of the system, so that no other line comes between and no kill leaves half of it.
        (&self.journal).write_all(format!("{what} {order}\n").as_bytes())
    }
}

impl billing::BillingHandler for Server {
    async fn charge(&self, _ctx: &ChannelContext<'_>, charge: Charge) -> Result<Receipt, HandlerError> {
        self.0.write("charge", charge.order)?;
        let slow = Some(self.0.bank.borrow())
            .filter(|bank| Instant::now() < bank.until)
            .map(|bank| bank.charge);
        tokio::time::sleep(slow.unwrap_or(CHARGE)).await;
        Ok(Receipt {
            order: charge.order,
            server: self.0.name.clone(),
        })
    }

    async fn audit(&self, _ctx: &ChannelContext<'_>, note: AuditNote) -> Result<(), HandlerError> {
        Ok(self.0.write("audit", note.order)?)
    }
}

impl billing::AdminHandler for Server {
    async fn slow_down(&self, _ctx: &NodeContext<'_>, slow: SlowDown) -> Result<Done, HandlerError> {
        let millis = |millis: u32| Duration::from_millis(millis.into());
        self.0.bank.send_replace(Bank {
            charge: millis(slow.charge_ms),
            until: Instant::now() + millis(slow.lasts_ms),
        });
        Ok(Done {})
    }

    async fn drain(&self, _ctx: &NodeContext<'_>, _: Drain) -> Result<Done, HandlerError> {
        self.0.drain.notify_one();
        Ok(Done {})
    }

    async fn pressure(&self, _ctx: &NodeContext<'_>, _: GetPressure) -> Result<Pressure, HandlerError> {
        Ok(self.0.pressure.borrow().clone())
    }
}

/// Serves until its administrator drains it.
pub(crate) async fn run(name: &str, weight: &str, journal: &str, store: &str) -> crate::Result<()> {
    // A server must not outlive whoever started it.
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(1);
    });
    let (seen, pressure) = watch::channel(Pressure::default());
    let server = Server(Arc::new(State {
        name: name.to_owned(),
        journal: File::options().create(true).append(true).open(journal)?,
        bank: watch::Sender::new(Bank {
            charge: CHARGE,
            until: Instant::now(),
        }),
        pressure,
        drain: Notify::new(),
    }));
    let channel = billing::server(server.clone())
        .weight(weight.parse()?)
        .dispatch_limit(AT_ONCE);
    let host = Host::builder()
        .max_queued_jobs(PERMITS)
        .location_store(store)
        .mesh("shop", |mesh| {
            mesh.rid_prefix(name)
                .serve(channel)
                .serve_node(billing::admin_server(server.clone()))
        })
        .start()
        .await?;
    println!("{}", std::str::from_utf8(host.mesh("shop")?.rid().as_bytes())?);

    let mut look = tokio::time::interval(Duration::from_millis(2));
    let watching = async {
        let mut live = Live::default();
        loop {
            look.tick().await;
            let jobs = host.status().jobs;
            seen.send_modify(|seen| *seen = pressure_of(&jobs, seen.most));
            live.show(&jobs);
        }
    };
    tokio::select! {
        () = server.0.drain.notified() => {}
        () = watching => {}
    }
    Ok(host.shutdown().await?)
}

/// What was said of the pressure last.
#[derive(Default)]
struct Live {
    said: Option<Instant>,
    transitions: u64,
}

impl Live {
    /// Says it where there is any, or has been since; not too often.
    fn show(&mut self, jobs: &JobQueueStatus) {
        let news = jobs.paused || jobs.transitions != self.transitions;
        if news && self.said.is_none_or(|said| said.elapsed() >= SAY) {
            (self.said, self.transitions) = (Some(Instant::now()), jobs.transitions);
            let (pauses, resumes) = (jobs.transitions.div_ceil(2), jobs.transitions / 2);
            println!(
                "{} of {} permits in use, {}: {pauses} pauses, {resumes} resumes",
                jobs.in_use(),
                jobs.limit,
                if jobs.paused { "PAUSED" } else { "RUNNING" }
            );
        }
    }
}

fn pressure_of(jobs: &JobQueueStatus, most: u32) -> Pressure {
    Pressure {
        permits: jobs.limit,
        most: most.max(jobs.in_use()),
        paused: jobs.paused,
        pauses: jobs.transitions.div_ceil(2),
        pause_ms: u64::try_from(jobs.paused_total.as_millis()).unwrap_or(u64::MAX),
    }
}
