//! An event is the message that its schema names.

use zlink_generated::test_every_type::{self, Empty};

fn wrong(host: &zlink_runtime::Host) {
    let _call = test_every_type::happenings_publisher(host).grouped(Empty {});
}

fn main() {}
