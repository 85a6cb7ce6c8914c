//! What zlink promises, shown on real processes: servers that are flooded, drained, killed and replaced under load.
//!
//! It only chooses what this process is: the play, or one of the servers that the play starts.

#![forbid(unsafe_code)]

mod evidence;
mod load;
mod play;
mod report;
mod server;

use std::process::ExitCode;
use std::time::Duration;

zlink_runtime::include_schema!("billing");

/// What goes wrong in a process of the demo, for people.
type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

const USAGE: &str = "usage: billing-demo [SECONDS]   how long each of the five phases lasts; 4 where it is not given";

#[tokio::main]
async fn main() -> ExitCode {
    if std::env::var_os("RUST_LOG").is_some() {
        tracing_subscriber::fmt()
            .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
            .with_writer(std::io::stderr)
            .init();
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let ended = match args[..] {
        [] => play::run(Duration::from_secs(4)).await,
        ["serve", name, weight, journal, store] => server::run(name, weight, journal, store).await.map(|()| true),
        [seconds] => match seconds.parse() {
            Ok(seconds @ 1..=60) => play::run(Duration::from_secs(seconds)).await,
            _ => Err(USAGE.into()),
        },
        _ => Err(USAGE.into()),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("billing-demo: {error}");
            ExitCode::from(2)
        }
    }
}
