//! References that an application keeps elsewhere, as JSON.

use serde_json::{Value, from_value, json, to_value};
use zlink_runtime::id::{ActorId, ActorRef, MeshName, ObjectGeneration, Rid, SpotId, SpotRef};

const MOST: u64 = i64::MAX as u64;

fn spot(generation: u64, node: &[u8]) -> SpotRef {
    SpotRef {
        id: SpotId::new("Straße/1 \"🛒\"").unwrap(),
        generation: ObjectGeneration::new(generation).unwrap(),
        mesh: MeshName::from_static("shop"),
        node: Rid::new(node).unwrap(),
    }
}

fn refusal(field: &str, value: Value) -> String {
    let mut kept = to_value(spot(1, b"a")).unwrap();
    kept[field] = value;
    from_value::<SpotRef>(kept).unwrap_err().to_string()
}

/// REQ: SP-007, AC-004
#[test]
fn a_reference_comes_back_from_json_as_it_was_and_its_generation_is_a_text() {
    let every_byte: Vec<u8> = (0..255).collect();
    for generation in [1, 1 << 53 | 1, MOST] {
        for node in [&b"node-1"[..], b"\\x41\"'", &every_byte] {
            let spot = spot(generation, node);
            let kept = to_value(&spot).unwrap();
            assert_eq!(kept["generation"], json!(generation.to_string()));
            assert_eq!(from_value::<SpotRef>(kept).unwrap(), spot);
        }
    }
    let actor = ActorRef {
        id: ActorId::from_static("p-1"),
        generation: ObjectGeneration::new(MOST).unwrap(),
        mesh: MeshName::from_static("world"),
        node: Rid::new("node-1").unwrap(),
    };
    let kept = to_value(&actor).unwrap();
    let expected = json!({ "id": "p-1", "generation": "9223372036854775807", "mesh": "world", "node": "node-1" });
    assert_eq!(kept, expected);
    assert_eq!(from_value::<ActorRef>(kept).unwrap(), actor);
}

/// REQ: SP-007
#[test]
fn what_is_no_reference_is_refused_and_told_why() {
    for generation in [
        json!(1),
        json!("0"),
        json!("01"),
        json!("+1"),
        json!("-1"),
        json!(" 1"),
        json!("9223372036854775808"),
    ] {
        let text = refusal("generation", generation.clone());
        assert!(
            text.contains("generation is a decimal text") || text.contains("expected a string"),
            "{generation}: {text}"
        );
    }
    assert!(refusal("id", json!("")).contains("a Spot ID is empty"));
    assert!(refusal("id", json!("a\0b")).contains("a Spot ID contains a NUL"));
    assert!(refusal("mesh", json!("m".repeat(256))).contains("a MeshName has 256 bytes"));
    for node in ["\\", "\\x", "\\xg0", "\\x41", "é", "\"", "\\q"] {
        let text = refusal("node", json!(node));
        assert!(text.contains("a RID is escaped"), "{node}: {text}");
    }
    assert!(refusal("node", json!("")).contains("a RID is empty"));
}
