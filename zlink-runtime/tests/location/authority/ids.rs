//! IDs of every kind are different Spots, on every store.

use proptest::prelude::*;
use zlink_runtime::testing::authority::authority_key;

use super::{Ask, Seen, Shared, host, id, ready, reserved};

/// IDs that a careless key would mix up.
fn awkward() -> Vec<String> {
    let mut ids: Vec<String> = [
        "a",
        "A",
        "a/",
        "/a",
        "a/b",
        "a%2Fb",
        "a%2fb",
        "%",
        "%%",
        "%25",
        "s:1:a",
        "1:a",
        ":",
        " ",
        "\u{1}",
        "a b",
        "~",
        "é",
        "e\u{301}",
        "🦀",
        "🦀🦀",
        "👩‍👩‍👧",
        "\u{feff}a",
        "a\u{200d}",
        "ß",
        "SS",
        "İ",
        "i\u{307}",
    ]
    .map(str::to_owned)
    .into();
    ids.extend(["x", "%", "/", "\u{1}"].map(|letter| letter.repeat(255)));
    // 255 bytes of four bytes each and three more; and one byte less.
    ids.push("🦀".repeat(63) + "abc");
    ids.push("🦀".repeat(63) + "ab");
    ids
}

/// REQ: LS-011, LS-010, SP-001
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_id_is_a_spot_of_its_own() {
    assert!(authority_key("").is_err() && authority_key("a\0").is_err() && authority_key(&"x".repeat(256)).is_err());
    for stores in Shared::every() {
        let (host, other) = (host(&stores, 1).await, host(&stores, 2).await);
        let mut spots = Vec::new();
        for (at, text) in awkward().iter().enumerate() {
            let reservation = reserved(host.reserve(Ask::new(&id(text), at as u128)).await);
            spots.push((text.clone(), ready(host.commit(reservation, b"").await)));
        }
        for (text, spot) in &spots {
            assert!(
                matches!(other.resolve(&id(text)).await, Seen::Ready(seen) if seen == *spot),
                "{text:?}"
            );
        }
        let mut owned: Vec<_> = host.owned().await.unwrap();
        assert_eq!(owned.len(), spots.len());
        for (text, spot) in spots {
            assert!(matches!(host.delete(&spot).await, Seen::Removed));
            assert!(matches!(other.resolve(&id(&text)).await, Seen::Missing), "{text:?}");
            owned.retain(|left| *left != spot);
        }
        assert!(owned.is_empty());
    }
}

proptest! {
    /// REQ: LS-011
    #[test]
    fn no_two_ids_share_a_key(a in "[%/:0-9aA\u{e9}🦀\u{301}]{1,6}|.{1,40}", b in "[%/:0-9aA\u{e9}🦀\u{301}]{1,6}|.{1,40}") {
        let keys = (authority_key(&a), authority_key(&b));
        if let (Ok(first), Ok(second)) = keys {
            prop_assert_eq!(first == second, a == b);
            prop_assert!(first.len() <= 1024 && first.starts_with("s:"));
            // What stays is unreserved ASCII; all else is uppercase percent-hex.
            let encoded = first.splitn(3, ':').nth(2).unwrap_or_default();
            prop_assert!(encoded.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte)));
        }
    }
}
