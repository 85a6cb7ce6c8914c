//! A handler has every method that its service names.

use zlink_generated::billing::BillingHandler;

struct Payments;

impl BillingHandler for Payments {}

fn main() {}
