//! The value of a declared metadata key has its type.

use zlink_generated::test_every_type::{self, ATTEMPT, Small};

fn wrong(host: &zlink_runtime::Host) {
    let _call = test_every_type::everything_client(host).ask(Small::default()).metadata(ATTEMPT, "seven");
}

fn main() {}
