//! There is none to read.

use zlink_runtime::FanoutContext;

fn wrong(context: &FanoutContext<'_>) {
    let _metadata = context.metadata();
}

fn main() {}
