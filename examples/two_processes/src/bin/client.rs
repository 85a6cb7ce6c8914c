//! A reader: `cargo run -p two-processes --bin client -- tcp://127.0.0.1:7010 Emma`. Each endpoint is one more desk to
//! choose from, and everything else a title.

use two_processes::library::{self, Answer, Lend, READER, Return};
use zlink_runtime::prelude::*;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (desks, titles): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|argument| argument.contains("://"));
    let host = Host::builder()
        .client_server(|channel| {
            let channel = channel.client(library::DESK);
            desks.iter().fold(channel, |channel, desk| channel.connect(desk))
        })
        .start()
        .await?;
    let desk = library::desk_client(&host);

    for title in titles {
        // The call waits for a desk until its timeout: the schema's two seconds.
        match desk.lend(Lend { title: title.clone() }).metadata(READER, "Anne").await {
            Ok(lent) if lent.answer == Answer::Lent => {
                println!("{title}: for {} days", lent.days);
                desk.bring_back(Return { title }).await?; // ready once it is on its way
            }
            Ok(_) => println!("{title}: out"),
            Err(CallError::Failed(error)) if error.execution() == Execution::NotExecuted => {
                println!("{title}: {error}; nothing was lent, so it is safe to ask again");
            }
            Err(error) => println!("{title}: {error}; it may have been lent"),
        }
    }
    Ok(host.shutdown().await?)
}
