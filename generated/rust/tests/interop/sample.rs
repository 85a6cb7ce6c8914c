//! A message with a value of every type in every place, and the least that is legal.

use std::collections::BTreeMap;

use zlink_generated::test_common::{Circle, Currency, Money, Point, Shape};
use zlink_generated::test_every_type::{All, Event, Kind, Mixed, Small, Vec2};
use zlink_runtime::id::{ActorId, ActorRef, MeshName, ObjectGeneration, Rid, SpotId, SpotRef};
use zlink_runtime::message::codec::Uuid;
use zlink_runtime::message::time::{SignedDuration, Timestamp};

fn small(text: &str) -> Small {
    Small { text: text.into() }
}

fn map<T: Clone>(entries: &[(&str, T)]) -> BTreeMap<String, T> {
    entries
        .iter()
        .map(|(key, value)| ((*key).to_owned(), value.clone()))
        .collect()
}

fn actor_ref(id: &'static str) -> ActorRef {
    ActorRef {
        id: ActorId::from_static(id),
        generation: ObjectGeneration::new(i64::MAX as u64).expect("the greatest"),
        mesh: MeshName::from_static("world"),
        node: Rid::new([0, 1, 255]).expect("three bytes"),
    }
}

/// The least that is legal.
pub(crate) fn least() -> All {
    All {
        a_bool: false,
        an_i8: 0,
        an_i16: 0,
        an_i32: 0,
        an_i64: 0,
        a_u8: 0,
        a_u16: 0,
        a_u32: 0,
        a_u64: 0,
        an_f32: 0.0,
        an_f64: 0.0,
        a_string: String::new(),
        some_bytes: Vec::new(),
        a_uuid: Uuid::nil(),
        a_timestamp: Timestamp::default(),
        a_duration: SignedDuration::default(),
        a_spot_id: None,
        an_actor_id: None,
        a_spot_ref: None,
        an_actor_ref: None,
        an_enum: Kind::default(),
        a_struct: Mixed::default(),
        a_union: None,
        a_message: None,
        required_string: String::new(),
        required_message: Small::default(),
        required_union: Shape::Circle(Circle::default()),
        bool_list: Vec::new(),
        number_list: Vec::new(),
        string_list: Vec::new(),
        bytes_list: Vec::new(),
        uuid_list: Vec::new(),
        timestamp_list: Vec::new(),
        enum_list: Vec::new(),
        struct_list: Vec::new(),
        union_list: Vec::new(),
        message_list: Vec::new(),
        spot_id_list: Vec::new(),
        actor_ref_list: Vec::new(),
        maybe_bool: None,
        maybe_number: None,
        maybe_float: None,
        maybe_enum: None,
        maybe_uuid: None,
        maybe_timestamp: None,
        number_map: BTreeMap::new(),
        string_map: BTreeMap::new(),
        enum_map: BTreeMap::new(),
        struct_map: BTreeMap::new(),
        union_map: BTreeMap::new(),
        message_map: BTreeMap::new(),
    }
}

/// A value of every type.
pub(crate) fn all() -> All {
    let money = Money {
        cents: -990,
        currency: Currency::Eur,
    };
    All {
        a_bool: true,
        an_i8: i8::MIN,
        an_i16: i16::MIN,
        an_i32: i32::MIN,
        an_i64: i64::MIN,
        a_u8: u8::MAX,
        a_u16: u16::MAX,
        a_u32: u32::MAX,
        a_u64: u64::MAX,
        an_f32: 0.5,
        an_f64: -2.25,
        a_string: "zwölf Boxkämpfer".into(),
        some_bytes: vec![0, 127, 255],
        a_uuid: Uuid::from_bytes([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]),
        a_timestamp: Timestamp::from_micros(1_700_000_000_000_001),
        a_duration: SignedDuration::from_micros(-1),
        a_spot_id: Some(SpotId::from_static("room-7")),
        an_actor_id: Some(ActorId::from_static("p-1")),
        a_spot_ref: Some(SpotRef {
            id: SpotId::from_static("room-7"),
            generation: ObjectGeneration::new(1).expect("the first"),
            mesh: MeshName::from_static("world"),
            node: Rid::new("n-1").expect("a RID"),
        }),
        an_actor_ref: Some(actor_ref("p-1")),
        an_enum: Kind::Potion,
        a_struct: Mixed {
            flag: true,
            number: 1.5,
            kind: Kind::Weapon,
            currency: Currency::Usd,
            id: Uuid::from_bytes([0x80; 16]),
            at: Timestamp::from_micros(-5),
            lasts: SignedDuration::from_micros(6),
            nested: Vec2 { x: 0.25, y: -0.25 },
            point: Point { x: -1, y: 2 },
            tail: 200,
        },
        a_union: Some(Box::new(Event::All(All { a_u8: 1, ..least() }))),
        a_message: Some(small("one")),
        required_string: "here".into(),
        required_message: small("two"),
        required_union: Shape::Circle(Circle {
            centre: Point { x: 3, y: 4 },
            radius: 5.0,
        }),
        bool_list: vec![true, false, true],
        number_list: vec![1, 2, 65535],
        string_list: vec!["a".into(), String::new(), "ß".into()],
        bytes_list: vec![vec![1, 2], vec![]],
        uuid_list: vec![Uuid::nil(), Uuid::max()],
        timestamp_list: vec![Timestamp::from_micros(1), Timestamp::from_micros(-1)],
        enum_list: vec![Kind::Weapon, Kind::Unspecified],
        struct_list: vec![Vec2 { x: 1.0, y: 2.0 }, Vec2::default()],
        union_list: vec![Event::Small(small("three")), Event::Money(money.clone())],
        message_list: vec![All { an_i8: 1, ..least() }, least()],
        spot_id_list: vec![SpotId::from_static("a"), SpotId::from_static("b")],
        actor_ref_list: vec![actor_ref("p-2")],
        maybe_bool: Some(false),
        maybe_number: Some(0),
        maybe_float: Some(0.0),
        maybe_enum: Some(Kind::Unspecified),
        maybe_uuid: Some(Uuid::nil()),
        maybe_timestamp: Some(Timestamp::default()),
        number_map: map(&[("", 0), ("one", 1)]),
        string_map: map(&[("k", "v".to_owned()), ("l", String::new())]),
        enum_map: map(&[("e", Kind::Weapon)]),
        struct_map: map(&[("s", Vec2 { x: 1.0, y: 0.0 })]),
        union_map: map(&[("u", Event::Small(small("four")))]),
        message_map: map(&[("m", money)]),
    }
}
