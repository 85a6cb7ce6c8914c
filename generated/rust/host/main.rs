//! A Rust host for clients in other languages: `interop-host old|next ENDPOINT NAME [jobs=N] [max_message=N] [weight=N]`.
//!
//! It serves the channel `interop`, as its schema has it or as a later version, says where it listens, and then does what
//! it is told on its input, a line at a time, with one line of answer each: `release` and `hold` (what handlers do that
//! were asked to hold), `seen` (the numbers that handlers have seen, in order), `weight N`, `drain` (ends in order). It ends
//! with its input. It must not know which language the clients are written in.

#![allow(clippy::print_stdout, reason = "that is how it answers")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::watch;
use zlink_generated::test_every_type::All;
use zlink_generated::{interop, interop_next};
use zlink_runtime::ListenerKind;
use zlink_runtime::prelude::*;

type Failure = Box<dyn std::error::Error>;

/// What both versions of the service share.
#[derive(Clone)]
struct Desk {
    name: String,
    seen: Arc<Mutex<Vec<u64>>>,
    released: watch::Receiver<bool>,
}

impl Desk {
    fn seen(&self, number: u64) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(number);
    }

    async fn work(&self, what: &str, number: u64) -> Result<(), HandlerError> {
        self.seen(number);
        match what {
            "fail" => Err(HandlerError::new("as it was told")),
            #[allow(clippy::panic, reason = "as it was told")]
            "panic" => panic!("as it was told"),
            "hold" => {
                let mut released = self.released.clone();
                released.wait_for(|released| *released).await?;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn metadata(context: &ChannelContext<'_>) -> BTreeMap<String, String> {
    let entries = context.metadata();
    entries
        .iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

struct Old(Desk);

impl interop::InteropHandler for Old {
    async fn echo(&self, _: &ChannelContext<'_>, all: All) -> Result<All, HandlerError> {
        Ok(all)
    }

    async fn ask(&self, context: &ChannelContext<'_>, order: interop::Order) -> Result<interop::Answer, HandlerError> {
        self.0.work(&order.what, order.number).await?;
        // Typed keys are read as a handler would, so that their text forms must fit.
        let entries = context.metadata();
        entries.read(interop::ATTEMPT)?;
        entries.read(interop::WEIGHT)?;
        entries.read(interop::URGENT)?;
        entries.read(interop::TRACE)?;
        entries.read(interop::SINCE)?;
        entries.read(interop::LASTS)?;
        Ok(interop::Answer {
            who: self.0.name.clone(),
            number: order.number,
            body: order.body.clone(),
            metadata: metadata(context),
            mood: interop::Mood::Calm,
            detail: Some(interop::Detail::Order(order)),
        })
    }

    async fn hurry(
        &self,
        context: &ChannelContext<'_>,
        order: interop::Order,
    ) -> Result<interop::Answer, HandlerError> {
        self.ask(context, order).await
    }

    async fn bounded(
        &self,
        _: &ChannelContext<'_>,
        bounded: interop::Bounded,
    ) -> Result<interop::Bounded, HandlerError> {
        Ok(bounded)
    }

    async fn tell(&self, _: &ChannelContext<'_>, order: interop::Order) -> Result<(), HandlerError> {
        self.0.work(&order.what, order.number).await
    }
}

struct Next(Desk);

impl interop_next::InteropHandler for Next {
    async fn ask(
        &self,
        context: &ChannelContext<'_>,
        order: interop_next::Order,
    ) -> Result<interop_next::Answer, HandlerError> {
        self.0.work(&order.what, order.number).await?;
        let novel = || interop_next::Novel { title: "new".into() };
        Ok(interop_next::Answer {
            who: self.0.name.clone(),
            number: order.number,
            body: order.body,
            metadata: metadata(context),
            mood: interop_next::Mood::Wild,
            detail: Some(interop_next::Detail::Novel(novel())),
            news: Some(novel()),
        })
    }

    async fn hurry(
        &self,
        _: &ChannelContext<'_>,
        order: interop_next::Order,
    ) -> Result<interop_next::Changed, HandlerError> {
        self.0.work(&order.what, order.number).await?;
        Ok(interop_next::Changed { who: u64::MAX })
    }

    async fn bounded(
        &self,
        _: &ChannelContext<'_>,
        strict: interop_next::Strict,
    ) -> Result<interop_next::Bounded, HandlerError> {
        Ok(interop_next::Bounded {
            text: strict.must,
            items: strict.items,
        })
    }

    async fn tell(&self, _: &ChannelContext<'_>, order: interop_next::Order) -> Result<(), HandlerError> {
        self.0.work(&order.what, order.number).await
    }
}

async fn start(version: &str, endpoint: &str, desk: Desk, options: &[String]) -> Result<Host, Failure> {
    let server = match version {
        "old" => interop::server(Old(desk)),
        "next" => interop_next::interop_server(Next(desk)),
        other => return Err(format!("neither old nor next: {other}").into()),
    };
    let option = |name: &str| {
        let text = options
            .iter()
            .find_map(|option| option.strip_prefix(name)?.strip_prefix('='));
        text.map(str::parse::<u32>).transpose()
    };
    let max_message = option("max_message")?;
    let mut builder = Host::builder().client_server(|channel| {
        let channel = channel.serve(server).listen(endpoint);
        match max_message {
            Some(bytes) => channel.max_message(bytes as usize),
            None => channel,
        }
    });
    if let Some(jobs) = option("jobs")? {
        builder = builder.max_queued_jobs(jobs);
    }
    let host = builder.start().await?;
    if let Some(weight) = option("weight")? {
        host.client_server(interop::INTEROP)?.set_weight(weight)?;
    }
    Ok(host)
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [version, endpoint, name, options @ ..] = arguments.as_slice() else {
        return Err("usage: interop-host old|next ENDPOINT NAME [OPTION=NUMBER …]".into());
    };
    let (release, released) = watch::channel(false);
    let desk = Desk {
        name: name.clone(),
        seen: Arc::default(),
        released,
    };
    let host = start(version, endpoint, desk.clone(), options).await?;
    let listener = host.listener(ListenerKind::ClientServer, interop::INTEROP.as_str())?;
    println!("listening {}", listener.endpoint);
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        match line.split_once(' ').unwrap_or((&line, "")) {
            ("release", _) => release.send_replace(true),
            ("hold", _) => release.send_replace(false),
            ("seen", _) => {
                let seen = desk.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
                println!("{seen:?}");
                continue;
            }
            ("weight", number) => {
                host.client_server(interop::INTEROP)?.set_weight(number.parse()?)?;
                true
            }
            ("drain", _) => {
                println!("draining");
                // What was asked to hold goes on being told.
                let told = async {
                    while let Ok(Some(line)) = lines.next_line().await {
                        release.send_replace(line == "release");
                        println!("done");
                    }
                };
                tokio::select! {
                    ended = host.shutdown() => ended?,
                    () = told => {}
                }
                println!("drained");
                return Ok(());
            }
            (other, _) => return Err(format!("unknown: {other}").into()),
        };
        println!("done");
    }
    Ok(())
}
