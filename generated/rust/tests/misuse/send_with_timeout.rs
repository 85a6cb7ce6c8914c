//! Nobody answers a one-way message, so there is nothing to wait for.

use std::time::Duration;
use zlink_generated::test_common::Money;
use zlink_generated::test_every_type;

fn wrong(host: &zlink_runtime::Host) {
    let _call = test_every_type::everything_client(host).tell(Money::default()).timeout(Duration::from_secs(1));
}

fn main() {}
