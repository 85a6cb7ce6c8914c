//! One process that serves a channel and calls it over the wire. The README explains it.

use billing::{BillingHandler, Charge, Receipt};
use zlink_runtime::prelude::*;

zlink_runtime::include_schema!("billing"); // the file and what it imports

struct Payments;

impl BillingHandler for Payments {
    async fn charge(&self, _ctx: &ChannelContext<'_>, charge: Charge) -> Result<Receipt, HandlerError> {
        Ok(Receipt {
            number: format!("R-{}", charge.order),
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let host = Host::builder()
        .client_server(|channel| channel.serve(billing::server(Payments)).client(billing::BILLING))
        .start()
        .await?; // a StartError lists every mistake

    let receipt = billing::client(&host)
        .charge(Charge {
            order: "42".into(),
            cents: 990,
        })
        .metadata("tenant", "acme")
        .await?; // IntoFuture: the call is the future

    println!("{}", receipt.number);
    Ok(host.shutdown().await?)
}
