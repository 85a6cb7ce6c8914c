//! Tests of the codec, on messages written by hand as the generator writes them.

#![allow(
    unreachable_pub,
    clippy::large_enum_variant,
    reason = "as in generated modules, which allow it, too"
)]

use proptest::prelude::*;

use super::*;
use crate::id::{MeshName, ObjectGeneration, Rid};
use crate::limit::PAYLOAD_BYTES;

structure! {
    /// Two numbers with padding between them.
    pub struct Vec2 [16, 8] {
        x: f32 => 0,
        y: i64 => 8,
    }
}

union! {
    /// One of one.
    pub enum Either {
        Node(Node) = 1,
    }
}

message! {
    /// A field of every kind.
    #[derive(Default)]
    "test.Node" => pub struct Node {
        name: String => string(0, "name").required().max(5),
        level: Option<u16> => optional(1, "level"),
        weight: f64 => inline(2, "weight"),
        place: Vec2 => inline(3, "place"),
        tags: Vec<String> => list(4, "tags").max(3),
        blobs: Vec<Vec<u8>> => list(5, "blobs"),
        samples: Vec<Vec2> => inlines(6, "samples"),
        child: Option<Box<Node>> => value(7, "child"),
        children: Vec<Node> => list(8, "children"),
        either: Option<Box<Either>> => value(9, "either"),
        counts: BTreeMap<String, i32> => inline_map(10, "counts"),
        texts: BTreeMap<String, String> => map(11, "texts"),
        actor: Option<ActorRef> => value(12, "actor"),
        data: Vec<u8> => bytes(13, "data"),
    } slots [weight place name tags blobs samples child children either counts texts actor data level]
}

message! {
    /// An older version of [`Node`], which knows nothing but the level.
    "test.Node" => pub struct Old {
        level: Option<u16> => optional(1, "level"),
    } slots [level]
}

enumeration! {
    /// A number with names.
    pub enum Mood: u8 [1] {
        Good = 0,
        Bad = 1,
    }
}

message! {
    /// Numbers with names, wherever they stand.
    #[derive(Default)]
    "test.Moody" => pub struct Moody {
        mood: Mood => inline(0, "mood"),
        moods: Vec<Mood> => inlines(1, "moods"),
        by_name: BTreeMap<String, Mood> => inline_map(2, "by_name"),
    } slots [mood moods by_name]
}

message! {
    /// A message of lists of itself, for messages that are wide or deep and nothing else.
    #[derive(Default)]
    "test.Chain" => pub struct Chain {
        next: Vec<Chain> => list(0, "next"),
    } slots [next]
}

/// A [`Chain`] as no honest writer builds it: at each level one list, all of whose `widths` items are the same table,
/// which holds the list of the next level.
fn hostile(widths: &[usize]) -> Vec<u8> {
    // The way to the root; then the one vtable: its size, that of its tables, and where they hold the list.
    let mut bytes = vec![10, 0, 0, 0, 6, 0, 8, 0, 4, 0];
    let table = |bytes: &mut Vec<u8>, list: u32| {
        let back = i32::try_from(bytes.len() - 4).unwrap();
        bytes.extend(back.to_le_bytes().into_iter().chain(list.to_le_bytes()));
    };
    for &width in widths {
        table(&mut bytes, 4);
        let width = u32::try_from(width).unwrap();
        bytes.extend(width.to_le_bytes());
        bytes.extend((0..width).flat_map(|item| (4 * (width - item)).to_le_bytes()));
    }
    table(&mut bytes, 4);
    bytes.extend([0; 4]);
    bytes
}

fn bytes_of<M: Message>(message: &M) -> Vec<u8> {
    let bytes = encode(message, <[u8]>::to_vec).unwrap();
    let most = measure(message).expect("what is encoded can be measured");
    assert!(
        bytes.len() <= most,
        "{} bytes, and at most {most} were to be",
        bytes.len()
    );
    bytes
}

/// Why it cannot be encoded; and then it is not measured, so that it is never handed on as it is.
fn refused<M: Message>(message: &M) -> EncodeError {
    assert_eq!(measure(message), None);
    encode(message, |_| ()).unwrap_err()
}

fn full() -> Node {
    let leaf = Node {
        name: "leaf".into(),
        ..Node::default()
    };
    Node {
        name: "root".into(),
        level: Some(0),
        weight: -0.0,
        place: Vec2 { x: 1.5, y: -7 },
        tags: vec!["a".into(), String::new(), "ü".into()],
        blobs: vec![vec![1, 2], vec![]],
        samples: vec![Vec2 { x: 0.0, y: 1 }, Vec2 { x: -1.0, y: i64::MIN }],
        child: Some(Box::new(leaf.clone())),
        children: vec![
            leaf.clone(),
            Node {
                level: Some(3),
                ..leaf.clone()
            },
        ],
        either: Some(Box::new(Either::Node(leaf))),
        counts: [("one".to_owned(), 1), ("zero".to_owned(), 0)].into(),
        texts: [(String::new(), String::new()), ("k".to_owned(), "v".to_owned())].into(),
        actor: Some(ActorRef {
            id: ActorId::from_static("p-1"),
            generation: ObjectGeneration::new(u64::MAX >> 1).unwrap(),
            mesh: MeshName::from_static("world"),
            node: Rid::new([0, 255]).unwrap(),
        }),
        data: vec![0, 1, 2],
    }
}

fn nested(depth: u32) -> Node {
    (1..depth).fold(Node::default(), |inner, _| Node {
        child: Some(Box::new(inner)),
        ..Node::default()
    })
}

#[test]
fn every_kind_of_field_survives() {
    for message in [full(), Node::default()] {
        let decoded: Node = decode(&bytes_of(&message)).unwrap();
        assert_eq!(decoded, message);
        assert_eq!(decoded.weight.to_bits(), message.weight.to_bits());
    }
}

#[test]
fn encoding_inside_encoding_and_after_a_failure_works() {
    let long = Node {
        name: "longer".into(),
        ..Node::default()
    };
    let outer = encode(&full(), |bytes| {
        assert_eq!(decode::<Node>(bytes).unwrap(), full());
        encode(&long, |_| ()).unwrap_err();
        assert_eq!(decode::<Node>(&bytes_of(&full())).unwrap(), full());
        bytes.to_vec()
    });
    assert_eq!(outer.unwrap(), bytes_of(&full()));
}

/// Unknown newer fields are ignored.
///
/// REQ: MSG-606
#[test]
fn newer_fields_are_ignored() {
    assert_eq!(decode::<Old>(&bytes_of(&full())), Ok(Old { level: Some(0) }));
}

/// Required fields.
///
/// REQ: MSG-606
#[test]
fn a_required_field_must_be_there() {
    let error = decode::<Node>(&bytes_of(&Old { level: None })).unwrap_err();
    assert_eq!(
        (error.field().as_str(), error.problem()),
        ("name", &DecodeProblem::Missing)
    );
    assert_eq!(error.to_string(), "name is required and absent");
}

#[test]
fn an_unknown_union_tag_is_kept_and_not_encoded_again() {
    let mut bytes = bytes_of(&Node {
        either: Some(Box::new(Either::Node(Node::default()))),
        ..Node::default()
    });
    let tagged = (0..bytes.len())
        .filter(|at| {
            let mut changed = bytes.clone();
            changed[*at] = 9;
            decode::<Node>(&changed).is_ok_and(|node| node.either == Some(Box::new(Either::Unknown(9))))
        })
        .collect::<Vec<_>>();
    let [tag] = tagged[..] else {
        panic!("one byte is the tag, not {tagged:?}")
    };
    bytes[tag] = 9;
    let mut node: Node = decode(&bytes).unwrap();
    node = Node {
        children: vec![Node::default(), node],
        ..Node::default()
    };
    let error = refused(&node);
    assert_eq!(
        error.to_string(),
        "children[1].either is a union member with the unknown tag 9, which cannot be encoded again"
    );
    bytes[tag] = 0;
    assert_eq!(decode::<Node>(&bytes).unwrap().either, None);
}

/// Bounds that the schema sets, in both directions.
///
/// REQ: MSG-903
#[test]
fn max_holds_when_encoding_and_when_decoding() {
    let at = Node {
        name: "12345".into(),
        tags: vec![String::new(); 3],
        ..Node::default()
    };
    assert_eq!(decode::<Node>(&bytes_of(&at)).unwrap(), at);
    let long = Node {
        name: "123456".into(),
        ..Node::default()
    };
    assert_eq!(*refused(&long).problem(), EncodeProblem::TooLong { actual: 6, max: 5 });
    let many = Node {
        tags: vec![String::new(); 4],
        ..Node::default()
    };
    assert_eq!(refused(&many).field(), "tags");

    let mut bytes = bytes_of(&at);
    let length = bytes.windows(4).position(|window| window == b"1234").unwrap() - 4;
    bytes[length] = 6;
    let error = decode::<Node>(&bytes).unwrap_err();
    assert_eq!(*error.problem(), DecodeProblem::TooLong { actual: 6, max: 5 });
}

/// What would be read as something else is encoded, wherever it goes.
#[test]
fn a_number_with_a_name_is_no_unknown_one() {
    let all = |mood| Moody {
        mood,
        moods: vec![Mood::Good, mood],
        by_name: [("it".to_owned(), mood)].into(),
    };
    for same in [Mood::Good, Mood::Bad, Mood::Unknown(7)] {
        assert_eq!(decode::<Moody>(&bytes_of(&all(same))).unwrap(), all(same));
    }
    let other = Moody {
        moods: vec![Mood::Unknown(1)],
        ..Moody::default()
    };
    assert_eq!(measure(&other), None);
    assert_eq!(
        encode(&other, |bytes| decode::<Moody>(bytes).unwrap().moods).unwrap(),
        [Mood::Bad]
    );
    for field in [
        Moody {
            mood: Mood::Unknown(0),
            ..Moody::default()
        },
        Moody {
            by_name: [(String::new(), Mood::Unknown(0))].into(),
            ..Moody::default()
        },
    ] {
        assert_eq!(measure(&field), None);
    }
}

/// Depth.
///
/// REQ: MSG-606
#[test]
fn depth_is_bounded_in_both_directions_at_the_same_place() {
    let deepest = nested(MAX_DEPTH);
    assert_eq!(decode::<Node>(&bytes_of(&deepest)).unwrap(), deepest);
    let error = refused(&nested(MAX_DEPTH + 1));
    assert_eq!(*error.problem(), EncodeProblem::TooDeep);

    let chain = |depth: usize| hostile(&vec![1; depth - 1]);
    assert!(decode::<Chain>(&chain(MAX_DEPTH as usize)).is_ok());
    let error = decode::<Chain>(&chain(MAX_DEPTH as usize + 1)).unwrap_err();
    assert_eq!(*error.problem(), DecodeProblem::TooDeep);
    assert_eq!(error.field(), ["next[0]"; MAX_DEPTH as usize].join("."));
}

/// A few bytes that name each other again and again do not grow into a large value.
///
/// REQ: MSG-903
#[test]
fn shared_bytes_cannot_inflate_a_message() {
    let bytes = hostile(&[60; 6]);
    assert!(bytes.len() < 2_000);
    assert_eq!(*decode::<Chain>(&bytes).unwrap_err().problem(), DecodeProblem::Inflated);
    // Where each is used a few times only, it passes: other writers share strings and tables.
    assert!(decode::<Chain>(&hostile(&[3])).is_ok());
}

/// The number of tables.
///
/// REQ: MSG-606
#[test]
fn tables_are_counted_in_both_directions() {
    let most = MAX_TABLES as usize - 1;
    let mut wide = Chain {
        next: vec![Chain::default(); most],
    };
    assert_eq!(decode::<Chain>(&bytes_of(&wide)).unwrap().next.len(), most);
    wide.next.push(Chain::default());
    assert_eq!(
        *encode(&wide, |_| ()).unwrap_err().problem(),
        EncodeProblem::TooManyTables
    );
    let error = decode::<Chain>(&hostile(&[most + 1])).unwrap_err();
    assert_eq!(*error.problem(), DecodeProblem::TooManyTables);
}

/// The builder's limit is an error, not a panic.
///
/// REQ: MSG-805
#[test]
fn a_message_that_is_too_large_is_refused() {
    let node = Node {
        data: vec![0; PAYLOAD_BYTES],
        ..Node::default()
    };
    let error = encode(&node, |_| ()).unwrap_err();
    assert_eq!(*error.problem(), EncodeProblem::TooLarge);
}

/// Truncated and changed bytes end in an error or in a value, never otherwise.
///
/// REQ: MSG-606, MSG-903
#[test]
fn every_cut_and_every_flipped_bit_is_survived() {
    let bytes = bytes_of(&full());
    for length in 0..bytes.len() {
        let _ = decode::<Node>(&bytes[..length]);
    }
    assert!(decode::<Node>(&bytes[..bytes.len() - 8]).is_err());
    for bit in 0..bytes.len() * 8 {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        if let Ok(node) = decode::<Node>(&changed) {
            let _ = encode(&node, |_| ());
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode::<Node>(&bytes);
    }

    #[test]
    fn names_and_numbers_survive(name in "[a-zü]{0,2}", level: Option<u16>, weight: f64, counts: BTreeMap<String, i32>) {
        let node = Node { name, level, weight, counts, ..Node::default() };
        let decoded: Node = decode(&bytes_of(&node)).unwrap();
        prop_assert_eq!(decoded.weight.to_bits(), weight.to_bits());
        prop_assert_eq!(Node { weight: 0.0, ..decoded }, Node { weight: 0.0, ..node });
    }
}
