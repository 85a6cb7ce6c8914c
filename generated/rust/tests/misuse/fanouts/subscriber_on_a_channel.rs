//! Events are no calls, so who handles them serves no channel.

use zlink_generated::test_every_type::{self, HappeningsHandler};
use zlink_runtime::Host;

fn wrong(handler: impl HappeningsHandler) {
    let subscriber = test_every_type::happenings_subscriber(handler);
    let _host = Host::builder().client_server(|channel| channel.serve(subscriber));
}

fn main() {}
