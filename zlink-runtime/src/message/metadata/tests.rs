//! Tests of the metadata snapshot.

use proptest::prelude::*;

use super::*;

fn metadata(entries: &[(&str, &str)]) -> Metadata {
    let mut metadata = Metadata::new();
    for (key, value) in entries {
        metadata.set(*key, *value).unwrap();
    }
    metadata
}

#[test]
fn what_is_set_is_read() {
    let metadata = metadata(&[("tenant", "acme"), ("a", ""), ("z", "ü")]);
    let received = MetadataView::parse(metadata.as_bytes()).unwrap();
    assert_eq!(
        received.iter().collect::<Vec<_>>(),
        [("a", ""), ("tenant", "acme"), ("z", "ü")]
    );
    assert_eq!(
        (received.get("tenant"), received.get("ten"), received.len()),
        (Some("acme"), None, 3)
    );
    assert_eq!(received.to_metadata(), metadata);
}

#[test]
fn the_layout_is_this() {
    assert_eq!(
        metadata(&[("b", "xy"), ("a", "")]).as_bytes(),
        b"\x00\x02\x01\x00\x00a\x01\x02\x00bxy"
    );
}

/// Keys and values are UTF-8 without NUL, keys are not empty.
///
/// REQ: MSG-401
#[test]
fn illegal_keys_and_values_are_refused_and_change_nothing() {
    let mut metadata = metadata(&[("k", "v")]);
    let before = metadata.clone();
    for (key, value) in [("", "v"), ("a\0", "v"), ("a", "v\0"), ("x".repeat(256).as_str(), "v")] {
        assert_eq!(metadata.set(key, value).unwrap_err().argument(), "metadata");
        assert_eq!(metadata, before);
    }
}

/// 1024 bytes pass, one more is refused.
///
/// REQ: MSG-402, MSG-801
#[test]
fn the_largest_set_passes_and_one_byte_more_is_refused() {
    let largest = "v".repeat(METADATA_BYTES - HEAD - ENTRY - 1);
    let mut metadata = Metadata::new();
    assert!(metadata.set("k", format!("{largest}v")).is_err());
    metadata.set("k", largest.as_str()).unwrap();
    assert_eq!(metadata.as_bytes().len(), METADATA_BYTES);
    assert!(MetadataView::parse(metadata.as_bytes()).is_ok());
    assert!(metadata.set("l", "").is_err());

    let mut longer = metadata.as_bytes().to_vec();
    longer[3..5].copy_from_slice(&u16::try_from(largest.len() + 1).unwrap().to_le_bytes());
    longer.push(b'v');
    assert_eq!(
        MetadataView::parse(&longer).unwrap_err(),
        MalformedMetadata("it is longer than 1024 bytes")
    );
}

/// The last value travels.
///
/// REQ: MSG-403
#[test]
fn a_key_set_again_is_replaced() {
    let mut metadata = metadata(&[("a", "1"), ("b", "2"), ("c", "3")]);
    metadata.set("b", "a longer one").unwrap();
    metadata.set("a", "").unwrap();
    let received = MetadataView::parse(metadata.as_bytes()).unwrap();
    assert_eq!(
        received.iter().collect::<Vec<_>>(),
        [("a", ""), ("b", "a longer one"), ("c", "3")]
    );
}

/// Malformed metadata is found before a handler sees it.
///
/// REQ: MSG-405
#[test]
fn malformed_bytes_are_refused() {
    let good = metadata(&[("a", "1"), ("b", "2")]).as_bytes().to_vec();
    for length in 0..good.len() {
        assert!(MetadataView::parse(&good[..length]).is_err(), "cut to {length}");
    }
    let bad = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        MetadataView::parse(&bytes).unwrap_err()
    };
    assert_eq!(bad(0, 1), MalformedMetadata("its head is unknown or counts no entries"));
    assert_eq!(bad(1, 0), MalformedMetadata("its head is unknown or counts no entries"));
    assert_eq!(bad(1, 1), MalformedMetadata("something follows its last entry"));
    assert_eq!(bad(1, 3), MalformedMetadata("an entry is cut off"));
    assert_eq!(bad(5, 0), MalformedMetadata("it contains a NUL"));
    assert_eq!(bad(6, 0), MalformedMetadata("it contains a NUL"));
    assert_eq!(bad(6, 0xff), MalformedMetadata("it is not UTF-8"));
    assert_eq!(
        bad(10, b'a'),
        MalformedMetadata("a key is empty, or not above the one before")
    );
}

#[test]
fn typed_keys_read_what_they_wrote() {
    const LEVEL: MetadataKey<u16> = MetadataKey::new("level");
    const TENANT: MetadataKey<String> = MetadataKey::new("tenant").relayed();
    let mut metadata = Metadata::new();
    metadata.set(LEVEL, 7).unwrap();
    metadata.set(TENANT, "acme").unwrap();
    let view = metadata.view();
    assert_eq!(view.get("level"), Some("7"));
    assert_eq!(view.read(LEVEL), Ok(Some(7)));
    assert_eq!(view.read(TENANT), Ok(Some("acme".to_owned())));
    assert!(TENANT.is_relayed() && !LEVEL.is_relayed());
    metadata.set("level", "seven").unwrap();
    assert!(metadata.view().read(LEVEL).is_err());
}

proptest! {
    /// It behaves as a sorted map does, and what it encodes parses to the same.
    #[test]
    fn it_is_a_map(entries in prop::collection::vec(("[a-e]{1,2}", "[x-z]{0,3}"), 0..40)) {
        let mut metadata = Metadata::new();
        let mut model = std::collections::BTreeMap::new();
        for (key, value) in &entries {
            metadata.set(key.as_str(), value.as_str()).unwrap();
            model.insert(key.as_str(), value.as_str());
        }
        prop_assert_eq!(metadata.view().iter().collect::<Vec<_>>(), model.into_iter().collect::<Vec<_>>());
        if !metadata.view().is_empty() {
            prop_assert_eq!(MetadataView::parse(metadata.as_bytes()).unwrap(), metadata.view());
        }
    }

    /// Whatever parses is walked without a gap.
    #[test]
    fn any_bytes_parse_or_are_refused(bytes in prop::collection::vec(0u8..4, 0..40)) {
        if let Ok(view) = MetadataView::parse(&bytes) {
            prop_assert_eq!(view.iter().count(), view.len());
        }
    }
}
