//! What is registered as a server handles its service.

use zlink_generated::billing;

struct Payments;

fn main() {
    let _server = billing::server(Payments);
}
