//! A handler answers with the reply that its method names.

use zlink_generated::billing::{BillingHandler, Charge};
use zlink_runtime::ChannelContext;
use zlink_runtime::error::HandlerError;

struct Payments;

impl BillingHandler for Payments {
    async fn charge(&self, _context: &ChannelContext<'_>, request: Charge) -> Result<Charge, HandlerError> {
        Ok(request)
    }
}

fn main() {}
