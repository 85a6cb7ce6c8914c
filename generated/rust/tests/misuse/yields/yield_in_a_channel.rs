//! A channel's handlers share no gate, so there is none to give back.

use zlink_generated::contract::{Note, OrdersClient};
use zlink_runtime::ChannelContext;

async fn settle(context: &ChannelContext<'_>, orders: &OrdersClient) {
    let _reply = context.yield_for(orders.ask(Note::default())).await;
}

fn main() {}
