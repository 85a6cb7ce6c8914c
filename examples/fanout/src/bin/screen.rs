//! A screen: `cargo run -p fanout --bin screen -- tcp://127.0.0.1:7020 doors.front`. Each endpoint is one more desk to
//! listen to, and everything else what topics begin with; where none is given, it shows all.

use fanout::office::{self, Door, Notice, OfficeNewsHandler};
use zlink_runtime::prelude::*;

/// Shows what it is told.
struct Screen;

impl OfficeNewsHandler for Screen {
    async fn door(&self, context: &FanoutContext<'_>, door: Door) -> Result<(), HandlerError> {
        let does = if door.open { "opens" } else { "closes" };
        println!("{}: the {} door {does}", context.topic(), door.name);
        Ok(())
    }

    async fn notice(&self, context: &FanoutContext<'_>, notice: Notice) -> Result<(), HandlerError> {
        println!("{}: {}", context.topic(), notice.text);
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (desks, topics): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|argument| argument.contains("://"));
    let host = Host::builder()
        .fanout(|fanout| {
            // One after the other, in the order in which they come.
            let fanout = fanout.subscriber(office::office_news_subscriber(Screen).dispatch_limit(1));
            let fanout = desks.iter().fold(fanout, |fanout, desk| fanout.connect(desk));
            topics.iter().fold(fanout, |fanout, topic| fanout.subscribe(topic))
        })
        .start()
        .await?;
    tokio::signal::ctrl_c().await?;
    Ok(host.shutdown().await?)
}
