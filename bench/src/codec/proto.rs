//! The order as a protobuf message, with prost's derive.

use crate::schema;

#[derive(Clone, PartialEq, prost::Message)]
pub struct Order {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "2")]
    customer: u64,
    #[prost(int64, tag = "3")]
    created_ms: i64,
    #[prost(uint32, tag = "4")]
    status: u32,
    #[prost(string, tag = "5")]
    currency: String,
    #[prost(string, tag = "6")]
    note: String,
    #[prost(message, optional, tag = "7")]
    ship_to: Option<Address>,
    #[prost(message, repeated, tag = "8")]
    lines: Vec<Line>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Address {
    #[prost(string, tag = "1")]
    street: String,
    #[prost(string, tag = "2")]
    city: String,
    #[prost(string, tag = "3")]
    zip: String,
    #[prost(string, tag = "4")]
    country: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Line {
    #[prost(string, tag = "1")]
    sku: String,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(uint32, tag = "3")]
    quantity: u32,
    #[prost(int64, tag = "4")]
    unit_cents: i64,
    #[prost(uint32, tag = "5")]
    discount_bp: u32,
}

impl From<schema::Order> for Order {
    fn from(order: schema::Order) -> Self {
        let schema::Order { id, customer, created_ms, status, currency, note, ship_to, lines } = order;
        let ship_to =
            ship_to.map(|schema::Address { street, city, zip, country }| Address { street, city, zip, country });
        let line = |schema::Line { sku, name, quantity, unit_cents, discount_bp }| Line {
            sku,
            name,
            quantity,
            unit_cents,
            discount_bp,
        };
        let lines = lines.into_iter().map(line).collect();
        Self { id, customer, created_ms, status, currency, note, ship_to, lines }
    }
}
