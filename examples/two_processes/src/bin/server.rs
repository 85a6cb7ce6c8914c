//! The desk: `cargo run -p two-processes --bin server -- tcp://127.0.0.1:7010`, until Ctrl-C.

use std::collections::HashSet;
use std::sync::Mutex;

use two_processes::library::{self, Answer, DeskHandler, Lend, Lent, READER, Return};
use zlink_runtime::ListenerKind;
use zlink_runtime::prelude::*;

/// The books that are here. A handler is shared by all calls, so what they change is behind a lock.
struct Desk(Mutex<HashSet<String>>);

impl DeskHandler for Desk {
    async fn lend(&self, context: &ChannelContext<'_>, wish: Lend) -> Result<Lent, HandlerError> {
        // Metadata comes from the caller: a value of another type is its error, a missing one is ours to judge.
        let reader = context
            .metadata()
            .read(READER)?
            .unwrap_or_else(|| "somebody".to_owned());
        let here = self.books()?.remove(&wish.title);
        println!(
            "{reader} asks for {}: {}",
            wish.title,
            if here { "here you are" } else { "out" }
        );
        Ok(Lent {
            answer: if here { Answer::Lent } else { Answer::Out },
            days: if here { 14 } else { 0 },
        })
    }

    async fn bring_back(&self, _context: &ChannelContext<'_>, book: Return) -> Result<(), HandlerError> {
        self.books()?.insert(book.title);
        Ok(())
    }
}

impl Desk {
    fn books(&self) -> Result<std::sync::MutexGuard<'_, HashSet<String>>, HandlerError> {
        self.0.lock().map_err(|_| HandlerError::new("the shelf fell over"))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let endpoint = std::env::args().nth(1).unwrap_or("tcp://127.0.0.1:7010".to_owned());
    let desk = Desk(Mutex::new(["Emma", "Persuasion"].map(str::to_owned).into()));
    let host = Host::builder()
        .client_server(|channel| channel.serve(library::desk_server(desk)).listen(&endpoint))
        .start()
        .await?;
    let listener = host.listener(ListenerKind::ClientServer, library::DESK.as_str())?;
    println!("listening on {}", listener.endpoint); // the real port, where 0 was asked for
    tokio::signal::ctrl_c().await?;
    println!("closing"); // what was accepted is finished; new calls go to another server, or end at once
    Ok(host.shutdown().await?)
}
