//! A whole cluster in one test, in virtual time: what the README shows of it.

use std::time::Duration;

use billing::{BillingHandler, Charge, Receipt};
use zlink_runtime::prelude::*;
use zlink_runtime::testing::Cluster;

zlink_runtime::include_schema!("billing");

struct Payments;

impl BillingHandler for Payments {
    async fn charge(&self, _ctx: &ChannelContext<'_>, charge: Charge) -> Result<Receipt, HandlerError> {
        Ok(Receipt {
            number: format!("R-{}", charge.order),
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_cut_off_is_survived() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = Cluster::new(42); // the seed: the same one, the same run
    for name in ["one", "two"] {
        cluster.node(name, move |host| {
            let server = billing::server(Payments);
            host.client_server(|channel| channel.serve(server).listen(format!("tcp://{name}:1")))
        });
    }
    cluster.node("till", |host| {
        let servers = ["tcp://one:1", "tcp://two:1"];
        host.client_server(|channel| {
            servers
                .into_iter()
                .fold(channel.client(billing::BILLING), |channel, server| {
                    channel.connect(server)
                })
        })
    });
    cluster.start_all().await?;
    cluster.ready(Duration::from_secs(5)).await;

    cluster.network().isolate("one");
    cluster.advance(Duration::from_secs(20)).await; // takes no time, and is enough to notice
    let charge = Charge {
        order: "42".into(),
        cents: 990,
    };
    let receipt = billing::client(&cluster.host("till")).charge(charge).await?;
    assert_eq!(receipt.number, "R-42");

    cluster.network().heal();
    cluster.ready(Duration::from_secs(10)).await;
    Ok(cluster.shutdown().await?)
}
