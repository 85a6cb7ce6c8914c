//! A call is used up by its end.

use zlink_generated::test_every_type::{self, Small};

async fn wrong(host: &zlink_runtime::Host) {
    let call = test_every_type::happenings_publisher(host).grouped(Small::default());
    let _ = call.await;
    let _ = call.await;
}

fn main() {}
