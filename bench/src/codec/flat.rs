//! The order on the official flatbuffers crate, as its own generator would write it: builder, verifier, accessors.

use flatbuffers::{
    FlatBufferBuilder, Follow, ForwardsUOffset, InvalidFlatbuffer, TableFinishedWIPOffset, Vector, Verifiable,
    Verifier, WIPOffset,
};

use crate::schema::{Address, Line, Order};

type Text<'a> = ForwardsUOffset<&'a str>;
type Lines<'a> = ForwardsUOffset<Vector<'a, ForwardsUOffset<LineTable<'a>>>>;

/// The place of a field in its table's index.
const fn at(id: u16) -> u16 {
    4 + 2 * id
}

/// The type of a table and how it is verified: each field's id and type.
macro_rules! table {
    ($table:ident: $($id:literal $field:literal $type:ty),+) => {
        #[derive(Clone, Copy)]
        struct $table<'a>(flatbuffers::Table<'a>);

        impl<'a> Follow<'a> for $table<'a> {
            type Inner = Self;

            unsafe fn follow(buffer: &'a [u8], place: usize) -> Self {
                // SAFETY: the caller promises that a table stands there.
                Self(unsafe { flatbuffers::Table::new(buffer, place) })
            }
        }

        impl Verifiable for $table<'_> {
            fn run_verifier(verifier: &mut Verifier, place: usize) -> Result<(), InvalidFlatbuffer> {
                let table = verifier.visit_table(place)?;
                $(let table = table.visit_field::<$type>($field, at($id), false)?;)+
                table.finish();
                Ok(())
            }
        }

        impl<'a> $table<'a> {
            fn get<T: Follow<'a> + 'a>(&self, id: u16) -> Option<T::Inner> {
                // SAFETY: tables come from `root`, which has verified them with these types.
                unsafe { self.0.get::<T>(at(id), None) }
            }

            fn text(&self, id: u16) -> String {
                self.get::<Text<'a>>(id).unwrap_or_default().to_owned()
            }
        }
    };
}

table!(OrderTable: 0 "id" u64, 1 "customer" u64, 2 "created_ms" i64, 3 "status" u32, 4 "currency" Text<'_>,
    5 "note" Text<'_>, 6 "ship_to" ForwardsUOffset<AddressTable<'_>>, 7 "lines" Lines<'_>);
table!(AddressTable: 0 "street" Text<'_>, 1 "city" Text<'_>, 2 "zip" Text<'_>, 3 "country" Text<'_>);
table!(LineTable: 0 "sku" Text<'_>, 1 "name" Text<'_>, 2 "quantity" u32, 3 "unit_cents" i64, 4 "discount_bp" u32);

pub fn encode<'b>(builder: &'b mut FlatBufferBuilder<'static>, order: &Order) -> &'b [u8] {
    builder.reset();
    let lines: Vec<_> = order.lines.iter().map(|line| encode_line(builder, line)).collect();
    let lines = builder.create_vector(&lines);
    let ship_to = order.ship_to.as_ref().map(|address| encode_address(builder, address));
    let currency = builder.create_string(&order.currency);
    let note = builder.create_string(&order.note);
    let table = builder.start_table();
    builder.push_slot(at(0), order.id, 0);
    builder.push_slot(at(1), order.customer, 0);
    builder.push_slot(at(2), order.created_ms, 0);
    builder.push_slot_always(at(7), lines);
    if let Some(ship_to) = ship_to {
        builder.push_slot_always(at(6), ship_to);
    }
    builder.push_slot_always(at(5), note);
    builder.push_slot_always(at(4), currency);
    builder.push_slot(at(3), order.status, 0);
    let root = builder.end_table(table);
    builder.finish_minimal(root);
    builder.finished_data()
}

fn encode_address<'a>(builder: &mut FlatBufferBuilder<'a>, address: &Address) -> WIPOffset<TableFinishedWIPOffset> {
    let texts = [&address.street, &address.city, &address.zip, &address.country];
    let texts = texts.map(|text| builder.create_string(text));
    let table = builder.start_table();
    for (id, text) in (0..).zip(texts) {
        builder.push_slot_always(at(id), text);
    }
    builder.end_table(table)
}

fn encode_line<'a>(builder: &mut FlatBufferBuilder<'a>, line: &Line) -> WIPOffset<ForwardsUOffset<LineTable<'a>>> {
    let sku = builder.create_string(&line.sku);
    let name = builder.create_string(&line.name);
    let table = builder.start_table();
    builder.push_slot(at(3), line.unit_cents, 0);
    builder.push_slot_always(at(0), sku);
    builder.push_slot_always(at(1), name);
    builder.push_slot(at(2), line.quantity, 0);
    builder.push_slot(at(4), line.discount_bp, 0);
    WIPOffset::new(builder.end_table(table).value())
}

pub fn decode(bytes: &[u8]) -> Result<Order, InvalidFlatbuffer> {
    let order = flatbuffers::root::<OrderTable<'_>>(bytes)?;
    Ok(Order {
        id: order.get::<u64>(0).unwrap_or_default(),
        customer: order.get::<u64>(1).unwrap_or_default(),
        created_ms: order.get::<i64>(2).unwrap_or_default(),
        status: order.get::<u32>(3).unwrap_or_default(),
        currency: order.text(4),
        note: order.text(5),
        ship_to: order.get::<ForwardsUOffset<AddressTable<'_>>>(6).map(|address| Address {
            street: address.text(0),
            city: address.text(1),
            zip: address.text(2),
            country: address.text(3),
        }),
        lines: order.get::<Lines<'_>>(7).into_iter().flatten().map(decode_line).collect(),
    })
}

fn decode_line(line: LineTable<'_>) -> Line {
    Line {
        sku: line.text(0),
        name: line.text(1),
        quantity: line.get::<u32>(2).unwrap_or_default(),
        unit_cents: line.get::<i64>(3).unwrap_or_default(),
        discount_bp: line.get::<u32>(4).unwrap_or_default(),
    }
}
