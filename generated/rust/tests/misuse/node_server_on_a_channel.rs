//! A service of nodes is no channel.

use zlink_generated::test_every_type::{self, AdminHandler};
use zlink_runtime::Host;

fn wrong(admin: impl AdminHandler) {
    let _host = Host::builder().client_server(|channel| channel.serve(test_every_type::admin_server(admin)));
}

fn main() {}
