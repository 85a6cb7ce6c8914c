//! A call takes the request that its method names.

use zlink_generated::billing::{self, Receipt};

fn wrong(host: &zlink_runtime::Host) {
    let _call = billing::client(host).charge(Receipt::default());
}

fn main() {}
