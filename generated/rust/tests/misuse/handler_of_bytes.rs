//! A handler gets the message that its method names, never the bytes it came as.

use zlink_generated::billing::{BillingHandler, Receipt};
use zlink_runtime::ChannelContext;
use zlink_runtime::error::HandlerError;

struct Payments;

impl BillingHandler for Payments {
    async fn charge(&self, _context: &ChannelContext<'_>, _request: &[u8]) -> Result<Receipt, HandlerError> {
        Ok(Receipt::default())
    }
}

fn main() {}
