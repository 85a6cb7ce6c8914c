//! A handler's future runs on any worker, so it holds nothing that is bound to one thread.

use std::rc::Rc;
use zlink_generated::billing::{BillingHandler, Charge, Receipt};
use zlink_runtime::ChannelContext;
use zlink_runtime::error::HandlerError;

struct Payments;

impl BillingHandler for Payments {
    async fn charge(&self, _context: &ChannelContext<'_>, request: Charge) -> Result<Receipt, HandlerError> {
        let order = Rc::new(request.order);
        std::future::ready(()).await;
        Ok(Receipt { number: order.to_string() })
    }
}

fn main() {}
