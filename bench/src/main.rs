//! Benchmarks of zlink beside what people would use instead: remote requests, one-way sends, objects with a state, codecs.
//!
//! `run` starts everything else as processes of its own, round by round, and prints one table per question.

mod budget;
mod codec;
mod instructions;
mod local;
mod memory;
mod micro;
mod owners;
mod process;
mod remote;
mod report;
mod run;
mod sample;
mod spots;

/// What the build script generated from `schemas/bench.yaml`.
mod schema {
    #![forbid(unsafe_code)]
    zlink_runtime::include_schema!("bench");
    pub use bench::*;
}

use process::Mode;
use sample::Effort;

const USAGE: &str = "\
zlink-bench run [--full] [--rounds N] [--only PART,...]   parts: remote oneway local spots codec micro owners
zlink-bench drive PEER MODE PART [--full]                 modes: 1cpu 2cpu split; peers: raw tonic tarpc zlink mesh spot
zlink-bench serve PEER MODE
zlink-bench local PEER PART THREADS [--full]              peers: mpsc kameo ractor zlink; parts: messages make
zlink-bench spots cold STORE THREADS [--full]             stores: memory sqlite redis
zlink-bench spots many COUNT [--full]
zlink-bench spots route [--full]
zlink-bench codec [--full]
zlink-bench micro [--full]
zlink-bench owners PART [--full]                         parts: idle told
zlink-bench instructions
zlink-bench in-process PART COUNT TASKS                  parts: remote oneway mesh-request mesh-send far-request far-send
                                                         spot-request spot-send spot-cold";

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).filter(|word| !word.starts_with("--")).collect();
    let effort = Effort { full: arguments.iter().any(|word| word == "--full") };
    match words.as_slice() {
        ["run", ..] => run::run(effort, &arguments),
        ["drive", peer, mode, part] => remote::drive(peer, Mode::parse(mode)?, part, effort),
        ["serve", peer, mode] => remote::serve(peer, Mode::parse(mode)?),
        ["local", peer, part, threads] => local::measure(peer, part, threads, effort),
        ["spots", what @ ..] => spots::measure(what, effort),
        ["codec"] => codec::measure(effort),
        ["micro"] => micro::measure(effort),
        ["owners", part] => owners::measure(part, effort),
        ["instructions"] => instructions::report(),
        ["in-process", part, count, tasks] if part.starts_with("spot-") => {
            spots::in_process(part, count.parse()?, tasks.parse()?)
        }
        ["in-process", part, count, tasks] => remote::in_process(part, count.parse()?, tasks.parse()?),
        _ => Err(USAGE.into()),
    }
}

/// Anything that ends a measurement.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
