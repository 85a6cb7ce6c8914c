//! The desk: `cargo run -p fanout --bin desk -- tcp://127.0.0.1:7020`, until its input ends. Each line goes to the screens:
//! `front opens` and `front closes` tell of a door, all else is a notice.

use fanout::office::{self, Door, Notice, OfficeNewsPublisher};
use tokio::io::{AsyncBufReadExt, BufReader};
use zlink_runtime::prelude::*;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let endpoint = std::env::args().nth(1).unwrap_or("tcp://127.0.0.1:7020".to_owned());
    let host = Host::builder()
        .fanout(|fanout| fanout.publisher(office::OFFICE_NEWS).listen(&endpoint))
        .start()
        .await?;
    if let Some(endpoint) = host.fanout(office::OFFICE_NEWS.as_str())?.endpoint() {
        println!("listening on {endpoint}"); // the real port, where 0 was asked for
    }
    let news = office::office_news_publisher(&host);
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        tell(&news, line).await?;
    }
    Ok(host.shutdown().await?)
}

/// Tells all screens that are there now; to whoever comes later, it is not told again.
async fn tell(news: &OfficeNewsPublisher, line: String) -> Result<(), CallError> {
    match line.split_once(' ') {
        Some((door, state @ ("opens" | "closes"))) => {
            let (name, open) = (door.to_owned(), state == "opens");
            // A topic of its own, for screens that want to know of this door alone.
            news.door(Door { name, open }).topic(format!("doors.{door}")).await
        }
        _ => news.notice(Notice { text: line }).await, // the topic of the schema
    }
}
