//! Nobody answers an event, so there is nothing to wait for.

use std::time::Duration;
use zlink_generated::test_every_type::{self, Small};

fn wrong(host: &zlink_runtime::Host) {
    let _call = test_every_type::happenings_publisher(host).grouped(Small::default()).timeout(Duration::from_secs(1));
}

fn main() {}
