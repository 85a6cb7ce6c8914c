//! x
use billing::{BillingHandler, Charge, Receipt};
use zlink_runtime::prelude::*;

include!("/tmp/billing.rs");

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
        .await?;
    let receipt = billing::client(&host)
        .charge(Charge {
            order: "42".into(),
            cents: 990,
        })
        .metadata("tenant", "acme")
        .await?;
    println!("{}", receipt.number);
    Ok(host.shutdown().await?)
}
