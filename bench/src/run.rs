//! Runs everything round by round, each measurement in a process of its own, and writes the report.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::sample::{Effort, Sample, parse};
use crate::{Failure, report};

const MODES: [&str; 2] = ["1cpu", "2cpu"];
const PEERS: [&str; 6] = ["raw", "tonic", "tarpc", "zlink", "mesh", "spot"];
const SEND_MODES: [&str; 3] = ["1cpu", "2cpu", "split"];
const SEND_PEERS: [&str; 4] = ["raw", "zlink", "mesh", "spot"];
const LOCAL_PEERS: [&str; 4] = ["mpsc", "kameo", "ractor", "zlink"];
/// Stores, and the threads that use them: a store of another process is waited for, however many there are.
const COLD: [(&str, &str); 4] = [("memory", "1"), ("memory", "2"), ("sqlite", "2"), ("redis", "2")];

/// The value behind a word of the command line.
fn option<'a>(arguments: &'a [String], name: &str) -> Option<&'a str> {
    let at = arguments.iter().position(|word| word == name)?;
    arguments.get(at + 1).map(String::as_str)
}

/// The measurements of one round, each the arguments of a process. Peers take turns, so that a slow moment of the
/// machine hits all of them.
fn round(parts: &[&str], effort: Effort) -> Vec<Vec<&'static str>> {
    let mut jobs = Vec::new();
    if parts.contains(&"remote") {
        for mode in MODES {
            jobs.extend(PEERS.map(|peer| vec!["drive", peer, mode, "remote"]));
        }
    }
    if parts.contains(&"oneway") {
        for mode in SEND_MODES {
            jobs.extend(SEND_PEERS.map(|peer| vec!["drive", peer, mode, "oneway"]));
        }
    }
    if parts.contains(&"local") {
        for threads in ["1", "2"] {
            jobs.extend(LOCAL_PEERS.map(|peer| vec!["local", peer, "messages", threads]));
        }
        jobs.extend(LOCAL_PEERS.map(|peer| vec!["local", peer, "make", "2"]));
    }
    if parts.contains(&"spots") {
        jobs.push(vec!["spots", "route"]);
        jobs.extend(COLD.map(|(store, threads)| vec!["spots", "cold", store, threads]));
        let many = effort.pick(&["1000", "100000", "1000000"][..], &["1000", "100000"]);
        jobs.extend(many.iter().map(|count| vec!["spots", "many", count]));
    }
    jobs.extend(parts.contains(&"codec").then(|| vec!["codec"]));
    jobs.extend(parts.contains(&"micro").then(|| vec!["micro"]));
    if parts.contains(&"owners") {
        jobs.extend([vec!["owners", "idle"], vec!["owners", "told"]]);
    }
    jobs
}

/// Runs one measurement.
fn measure(job: &[&str], effort: Effort) -> Result<Vec<Sample>, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(job).args(effort.full.then_some("--full")).stderr(Stdio::inherit());
    let output = command.output()?;
    let samples: Vec<_> = String::from_utf8_lossy(&output.stdout).lines().filter_map(parse).collect();
    if !output.status.success() || samples.is_empty() {
        return Err(format!("`{}` failed: {}", job.join(" "), output.status).into());
    }
    Ok(samples)
}

/// What the figures depend on.
fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let cpu = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let load = read("/proc/loadavg");
    let load = load.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
    let told = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output();
        output.map_or_else(|_| "?".to_owned(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    format!(
        "- date: {}\n- machine: {cpus} × {}, Linux {}\n- compiler: {}\n- commit: {}\n- load before: {load}\n",
        told("date", &["-u", "+%Y-%m-%d %H:%M UTC"]),
        cpu.trim_start_matches([' ', '\t', ':']),
        read("/proc/sys/kernel/osrelease").trim(),
        told("rustc", &["--version"]),
        told("git", &["describe", "--always", "--dirty"]),
    )
}

const NOTES: &str = "\
A cell is the median over the rounds (least–most). A ratio is one of medians (least–most of the rounds' own ratios). In
every round each peer runs once, in turn. `1cpu`: both processes on one processor, one thread each; `2cpu`: tokio's
default runtime on two processors; `split`: a thread and a processor each. CPU: of both processes, per million. `zlink Spot`
is called by its ID through the generated client. Bytes of an idle Spot are those beyond its own state and the store's
records, which are in the same process.
";

pub fn run(effort: Effort, arguments: &[String]) -> Result<(), Failure> {
    let rounds: u32 = option(arguments, "--rounds").unwrap_or(effort.pick("9", "5")).parse()?;
    let parts: Vec<&str> =
        option(arguments, "--only").unwrap_or("remote,oneway,local,spots,codec,micro,owners").split(',').collect();
    let machine = machine();
    let begin = Instant::now();
    let (mut samples, mut failures) = (Vec::new(), Vec::new());
    for number in 1..=rounds {
        eprintln!("round {number} of {rounds}, {} s", begin.elapsed().as_secs());
        for job in round(&parts, effort) {
            match measure(&job, effort) {
                Ok(more) => samples.extend(more),
                Err(failure) => {
                    eprintln!("{failure}");
                    failures.push(failure.to_string());
                }
            }
        }
    }
    let (tables, missed) = report::tables(&samples);
    let text = format!(
        "# Benchmarks\n\n- command: `zlink-bench {}`\n{machine}- rounds: {rounds}, in {} s\n- budgets missed: {missed}\n\n{NOTES}\n{tables}",
        arguments.join(" "),
        begin.elapsed().as_secs(),
    );
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("latest.md"), &text)?;
    println!("{text}");
    match failures.as_slice() {
        [] => Ok(()),
        some => Err(format!("{} measurements failed, the first: {}", some.len(), some[0]).into()),
    }
}
