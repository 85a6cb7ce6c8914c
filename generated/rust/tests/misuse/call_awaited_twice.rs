//! A call is consumed by its submission.

use zlink_generated::billing::{self, Charge};

async fn twice(host: &zlink_runtime::Host) {
    let call = billing::client(host).charge(Charge::default());
    let _first = call.await;
    let _second = call.await;
}

fn main() {}
