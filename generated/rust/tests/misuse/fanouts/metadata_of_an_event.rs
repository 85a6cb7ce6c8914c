//! An event carries no metadata.

use zlink_generated::test_every_type::{self, Small, TENANT};

fn wrong(host: &zlink_runtime::Host) {
    let _call = test_every_type::happenings_publisher(host).grouped(Small::default()).metadata(TENANT, "acme");
}

fn main() {}
