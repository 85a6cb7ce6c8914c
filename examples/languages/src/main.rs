//! The billing service for clients in other languages: `cargo run -p languages`, until Ctrl-C.

use billing::{BillingHandler, Charge, Receipt};
use zlink_runtime::ListenerKind;
use zlink_runtime::prelude::*;

zlink_runtime::include_schema!("billing");

struct Payments;

impl BillingHandler for Payments {
    async fn charge(&self, context: &ChannelContext<'_>, charge: Charge) -> Result<Receipt, HandlerError> {
        let tenant = context.metadata().get("tenant").unwrap_or("nobody");
        println!("{tenant} pays {} for order {}", charge.cents, charge.order);
        Ok(Receipt {
            number: format!("R-{}", charge.order),
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let endpoint = std::env::args().nth(1).unwrap_or("tcp://127.0.0.1:7001".to_owned());
    let host = Host::builder()
        .client_server(|channel| channel.serve(billing::server(Payments)).listen(&endpoint))
        .start()
        .await?;
    let listener = host.listener(ListenerKind::ClientServer, billing::BILLING.as_str())?;
    println!("listening on {}", listener.endpoint);
    tokio::signal::ctrl_c().await?;
    Ok(host.shutdown().await?)
}
