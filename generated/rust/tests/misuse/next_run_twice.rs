//! A filter lets a message through once.

use zlink_runtime::error::HandlerError;
use zlink_runtime::{Filter, FilterContext, Next};

struct Again;

impl Filter for Again {
    async fn handle(&self, _: &FilterContext<'_>, next: Next<'_>) -> Result<(), HandlerError> {
        next.run().await?;
        next.run().await
    }
}

fn main() {}
