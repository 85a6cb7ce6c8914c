//! The play: three servers and one client under a steady load, in five phases.
//!
//! It starts, slows, drains and kills. What came of it is for the report to judge.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::{sleep, timeout};
use zlink_runtime::prelude::*;

use crate::Result;
use crate::billing::{self, AdminClient, Drain, GetPressure, SlowDown};
use crate::evidence::{Evidence, Fates, Journal, Phase};
use crate::load::Load;

const SHOP: MeshName = MeshName::from_static("shop");
/// How long anything may take that should happen at once.
const SOON: Duration = Duration::from_secs(30);

/// Plays, and prints what happened. `false` where zlink did not keep a promise.
pub(crate) async fn run(phase: Duration) -> Result<bool> {
    let folder = std::env::temp_dir().join(format!("billing-demo-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let evidence = play(&folder, phase).await?;
    print!("\n{evidence}");
    let kept = evidence.promises().iter().all(|(_, broken)| *broken == 0);
    if kept {
        std::fs::remove_dir_all(&folder)?;
    } else {
        println!("\nwhat each server ran is kept in {}", folder.display());
    }
    Ok(kept)
}

async fn play(folder: &Path, phase: Duration) -> Result<Evidence> {
    let store = format!("sqlite://{}", folder.join("shop.db").display());
    let host = Host::builder()
        .location_store(store.clone())
        .mesh("shop", |mesh| mesh.rid_prefix("client").client(billing::BILLING))
        .start()
        .await?;
    let mut stage = Stage {
        host,
        store,
        rids: HashMap::new(),
        folder: folder.to_owned(),
        begin: Instant::now(),
    };
    let mut a = stage.start("a", 100).await?;
    let mut b = stage.start("b", 200).await?;
    let mut c = stage.start("c", 300).await?;
    let load = Load::start(&stage.host);

    stage.say(
        "calm",
        "a, b and c serve the channel \"billing\" with weights 100, 200 and 300, found through SQLite",
    );
    sleep(phase).await;

    load.enter(Phase::Flood);
    stage.slow_down("c", phase / 2).await?;
    stage.say(
        "flood",
        "charges at c take 400 ms instead of 20: more comes in than it can do",
    );
    stage.until("c pauses its peers", || stage.is_paused("c")).await?;
    stage.say("", "c is PAUSED: its callers hold back; a and b go on");
    sleep(phase / 2).await;
    stage.until("c lets its peers run", || !stage.is_paused("c")).await?;
    stage.say("", "c is fast again and RUNNING");
    sleep(phase / 2).await;

    load.enter(Phase::Drain);
    sleep(phase / 4).await;
    stage.slow_down("a", phase / 2).await?;
    sleep(phase / 4).await;
    stage.admin("a")?.drain(Drain {}).await?;
    stage.until("a leaves the selection", || !stage.is_target("a")).await?;
    let left = load.fired();
    stage.say(
        "drain",
        "a is asked to leave while it has slow charges to do: it gets nothing new",
    );
    let a_ended_well = a.ended_well().await?;
    stage.say("", "a has done what it had accepted, and has ended");
    sleep(phase / 2).await;

    load.enter(Phase::Kill);
    sleep(phase / 4).await;
    b.process.start_kill()?;
    stage.say("kill", "b got SIGKILL in the middle of its work");
    b.process.wait().await?;
    stage.until("b is missed", || !stage.is_target("b")).await?;
    sleep(phase * 3 / 4).await;

    load.enter(Phase::Join);
    let mut d = stage.start("d", 200).await?;
    stage.say("join", "d takes the place of b, with its weight");
    sleep(phase).await;

    let seen = load.stop().await?;
    let mut pressure = Vec::new();
    for name in ["c", "d"] {
        pressure.push((name, stage.admin(name)?.pressure(GetPressure {}).await?));
        stage.admin(name)?.drain(Drain {}).await?;
    }
    let (c_ended_well, d_ended_well) = (c.ended_well().await?, d.ended_well().await?);
    stage.host.shutdown().await?;
    stage.say("end", "all have left");
    let servers = [("a", 100), ("b", 200), ("c", 300), ("d", 200)];
    let journals = servers.map(|(name, weight)| Journal::read(name, weight, &stage.journal(name)));
    let fates = Fates {
        drained: "a",
        left,
        killed: "b",
        flooded: "c",
        joined: "d",
        pressure,
        ended_well: vec![("a", a_ended_well), ("c", c_ended_well), ("d", d_ended_well)],
    };
    Ok(Evidence::new(seen, journals.into_iter().collect::<Result<_>>()?, fates))
}

/// A server process.
struct Server {
    process: Child,
    /// It ends when this is closed, as it is when the play crashes.
    _lifeline: Option<ChildStdin>,
}

impl Server {
    /// Waits for its end; whether it was a good one.
    async fn ended_well(&mut self) -> Result<bool> {
        Ok(timeout(SOON, self.process.wait()).await??.success())
    }
}

/// What the phases play on.
struct Stage {
    host: Host,
    /// Where all find each other.
    store: String,
    /// Of each server that was started, by its name.
    rids: HashMap<String, Rid>,
    folder: PathBuf,
    begin: Instant,
}

impl Stage {
    /// Starts a server process, and waits until it was found and is selected.
    async fn start(&mut self, name: &str, weight: u32) -> Result<Server> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(["serve", name, &weight.to_string()])
            .arg(self.journal(name))
            .arg(&self.store)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let lifeline = process.stdin.take();
        let output = process.stdout.take().ok_or("the server has no output")?;
        let mut lines = BufReader::new(output).lines();
        let rid = timeout(SOON, lines.next_line())
            .await??
            .ok_or("the server did not start")?;
        self.rids.insert(name.to_owned(), Rid::new(rid)?);
        let (begin, server) = (self.begin, name.to_owned());
        // What it says of its pressure, as it says it.
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                say(begin, "", &format!("  {server}: {line}"));
            }
        });
        self.until("a new server is selected", || self.is_target(name)).await?;
        Ok(Server {
            process,
            _lifeline: lifeline,
        })
    }

    fn admin(&self, name: &str) -> Result<AdminClient> {
        let rid = self.rids.get(name).ok_or("no such server was started")?;
        Ok(billing::admin_client(&self.host, &SHOP, rid.clone()))
    }

    /// Makes its charges take 400 ms, for that time.
    async fn slow_down(&self, name: &str, lasts: Duration) -> Result<()> {
        let lasts_ms = u32::try_from(lasts.as_millis())?;
        let slow = SlowDown {
            charge_ms: 400,
            lasts_ms,
        };
        self.admin(name)?.slow_down(slow).await?;
        Ok(())
    }

    fn journal(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Whether calls may be selected to run there.
    fn is_target(&self, name: &str) -> bool {
        let targets = self
            .host
            .mesh("shop")
            .map(|mesh| mesh.status().channels)
            .unwrap_or_default();
        targets
            .iter()
            .flat_map(|(_, targets)| targets)
            .any(|target| self.rids.get(name) == Some(&target.rid))
    }

    /// Whether it asks its callers to hold back.
    fn is_paused(&self, name: &str) -> bool {
        let peers = self
            .host
            .mesh("shop")
            .map(|mesh| mesh.status().peers)
            .unwrap_or_default();
        let rid = self.rids.get(name);
        peers.iter().any(|peer| peer.rid.as_ref() == rid && peer.paused)
    }

    async fn until(&self, what: &str, holds: impl Fn() -> bool) -> Result<()> {
        let end = Instant::now() + SOON;
        while !holds() {
            if Instant::now() > end {
                return Err(format!("waited {SOON:?} in vain: {what}").into());
            }
            sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }

    fn say(&self, phase: &str, what: &str) {
        say(self.begin, phase, what);
    }
}

fn say(begin: Instant, phase: &str, what: &str) {
    println!("{:>5.1} s  {phase:<6} {what}", begin.elapsed().as_secs_f64());
}
