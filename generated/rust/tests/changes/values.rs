//! For each change of data: values of both versions that show what it does.
//!
//! It must not know which rules there are.

use std::collections::BTreeMap;

use zlink_runtime::id::{ActorId, SpotId};
use zlink_runtime::message::time::{SignedDuration, Timestamp};

use crate::exchange::Way;
use crate::{after, before};

/// The ways of a change: from the older version to the newer, and back. Nothing for a change of services.
pub(crate) fn ways(name: &str) -> Option<Vec<Way>> {
    /// `older => newer` is what an older program sends and what it means to a newer one; `newer <= older`, the reverse.
    macro_rules! ways {
        ($name:ident: $(>> $old:tt => $new:tt)* $(<< $after:tt => $older:tt)*) => {
            vec![
                $(Way::of(before::$name $old, &after::$name $new),)*
                $(Way::of(after::$name $after, &before::$name $older),)*
            ]
        };
    }
    let text = || "text".to_owned();
    let map = |keys: &[&str]| {
        keys.iter()
            .map(|key| ((*key).to_owned(), 7))
            .collect::<BTreeMap<String, u8>>()
    };
    let spot = |id: &str| SpotId::new(id).ok();
    let actor = |id: &str| ActorId::new(id).ok();
    Some(match name {
        "field_added" => ways!(FieldAdded:
            >> { x: 7 } => { x: 7, y: String::new() }
            << { x: 7, y: text() } => { x: 7 }),
        "field_added_required" => ways!(FieldAddedRequired:
            >> { x: 7 } => { x: 7, y: String::new() }
            << { x: 7, y: text() } => { x: 7 }),
        "field_removed" => ways!(FieldRemoved:
            >> { x: 7, y: text() } => { x: 7 }
            << { x: 7 } => { x: 7, y: String::new() }),
        "field_removed_required" => ways!(FieldRemovedRequired:
            >> { x: 7, y: text() } => { x: 7 }
            << { x: 7 } => { x: 7, y: String::new() }),
        "field_renamed" => ways!(FieldRenamed: >> { x: 7 } => { amount: 7 } << { amount: 7 } => { x: 7 }),
        "fields_reordered" => ways!(FieldsReordered:
            >> { x: 1, y: 2 } => { x: 1, y: 2 }
            << { x: 1, y: 2 } => { x: 1, y: 2 }),
        "fields_swapped" => ways!(FieldsSwapped:
            >> { x: 1, y: 2 } => { x: 1, y: 2 }
            << { x: 1, y: 2 } => { x: 1, y: 2 }),
        "field_moved" => ways!(FieldMoved: >> { x: 7 } => { first: 0, x: 7 } << { first: 1, x: 7 } => { x: 7 }),
        "field_widened" => ways!(FieldWidened:
            >> { x: 7, y: 0x0101 } => { x: 7, y: 0x0101 }
            << { x: 70_000, y: 1 } => { x: u16::MAX, y: 1 }),
        "field_signed" => ways!(FieldSigned: >> { x: 40_000 } => { x: i16::MAX } << { x: -1 } => { x: 0 }),
        "field_float" => ways!(FieldFloat: >> { x: 7 } => { x: 7.0 } << { x: 7.0 } => { x: 7 }),
        "field_bool" => ways!(FieldBool: >> { x: true } => { x: 1 } << { x: 2 } => { x: false }),
        "field_number_to_text" => ways!(FieldNumberToText:
            >> { x: u64::MAX } => { x: u64::MAX.to_string() }
            << { x: "7".to_owned() } => { x: 7 }),
        "field_text_to_bytes" => ways!(FieldTextToBytes:
            >> { x: text() } => { x: text().into_bytes() }
            << { x: vec![0xFF] } => { x: String::new() }),
        "field_text_to_id" => ways!(FieldTextToId:
            >> { x: text() } => { x: spot("text") } >> { x: "x".repeat(256) } => { x: None }
            << { x: spot("text") } => { x: text() }),
        "field_one_to_many" => ways!(FieldOneToMany:
            >> { x: text() } => { x: vec![text()] }
            << { x: vec![text()] } => { x: text() }),
        "field_to_optional" => ways!(FieldToOptional:
            >> { x: 7 } => { x: Some(7) } >> { x: 0 } => { x: Some(0) }
            << { x: Some(0) } => { x: 0 } << { x: None } => { x: 0 }),
        "field_to_message" => ways!(FieldToMessage:
            >> { x: text() } => { x: Some(after::FieldToMessageInner { text: text() }) }
            << { x: Some(after::FieldToMessageInner { text: text() }) } => { x: text() }),
        "list_of_other_items" => ways!(ListOfOtherItems:
            >> { x: vec![1, 2] } => { x: vec![1, 2] }
            << { x: vec![1, 2] } => { x: vec![1, 2] }),
        "map_of_other_values" => ways!(MapOfOtherValues:
            >> { x: BTreeMap::from([(text(), 7)]) } => { x: BTreeMap::from([(text(), "7".to_owned())]) }
            << { x: BTreeMap::from([(text(), "7".to_owned())]) } => { x: BTreeMap::from([(text(), 7)]) }),
        "field_named_time" => ways!(FieldNamedTime:
            >> { x: -7 } => { x: Timestamp::from_micros(-7) }
            << { x: Timestamp::from_micros(-7) } => { x: -7 }),
        "field_named_enum" => ways!(FieldNamedEnum:
            >> { x: 1 } => { x: after::FieldNamedEnumKind::Card }
            >> { x: 9 } => { x: after::FieldNamedEnumKind::Unknown(9) }
            << { x: after::FieldNamedEnumKind::Card } => { x: 1 }),
        "field_other_identity" => ways!(FieldOtherIdentity:
            >> { x: spot("text") } => { x: actor("text") }
            << { x: actor("text") } => { x: spot("text") }),
        "field_bytes_as_list" => ways!(FieldBytesAsList:
            >> { x: vec![1, 2, 255, 0] } => { x: vec![1, 2, 255, 0] } >> { x: vec![] } => { x: vec![] }
            << { x: vec![1, 2, 255, 0] } => { x: vec![1, 2, 255, 0] }),
        "field_made_required" => ways!(FieldMadeRequired:
            >> { x: text(), y: None } => { x: text(), y: after::FieldMadeRequiredInner::default() }
            << { x: text(), y: after::FieldMadeRequiredInner::default() }
                => { x: text(), y: Some(before::FieldMadeRequiredInner::default()) }),
        "field_made_free" => ways!(FieldMadeFree:
            >> { x: before::FieldMadeFreeInner::default() } => { x: Some(after::FieldMadeFreeInner::default()) }
            << { x: None } => { x: before::FieldMadeFreeInner::default() }),
        "max_added" => {
            ways!(MaxAdded: >> { x: "12345".to_owned() } => { x: "12345".to_owned() } << { x: text() } => { x: text() })
        }
        "max_lowered" => {
            ways!(MaxLowered: >> { x: vec![7; 5] } => { x: vec![7; 5] } << { x: vec![7; 4] } => { x: vec![7; 4] })
        }
        "max_raised" => ways!(MaxRaised:
            >> { x: map(&["a"]) } => { x: map(&["a"]) }
            << { x: map(&["a", "b"]) } => { x: map(&["a", "b"]) }),
        "max_removed" => {
            ways!(MaxRemoved: >> { x: vec![7; 4] } => { x: vec![7; 4] } << { x: vec![7; 5] } => { x: vec![7; 5] })
        }
        "field_documented" => ways!(FieldDocumented: >> { x: 7 } => { x: 7 } << { x: 7 } => { x: 7 }),
        // Of an even older program, whose field 1 was a number.
        "id_reused" => vec![Way::of(
            before::FieldsSwapped { x: 7, y: 8 },
            &after::IdReused {
                x: 7,
                fresh: String::new(),
            },
        )],
        "field_not_reserved" => ways!(FieldNotReserved:
            >> { x: 7, y: text() } => { x: 7 }
            << { x: 7 } => { x: 7, y: String::new() }),
        _ => return declared(name),
    })
}

/// The same for what fields name: enums, structs, unions, messages.
fn declared(name: &str) -> Option<Vec<Way>> {
    macro_rules! one {
        ($name:ident.$field:ident: $(>> $old:expr => $new:expr;)* $(<< $after:expr => $older:expr;)*) => {
            vec![
                $(Way::of(before::$name { $field: $old }, &after::$name { $field: $new }),)*
                $(Way::of(after::$name { $field: $after }, &before::$name { $field: $older }),)*
            ]
        };
    }
    let text = || "text".to_owned();
    Some(match name {
        "value_added" => one!(ValueAdded.x:
            >> before::ValueAddedKind::Card => after::ValueAddedKind::Card;
            << after::ValueAddedKind::Cash => before::ValueAddedKind::Unknown(2);),
        "value_removed" => one!(ValueRemoved.x:
            >> before::ValueRemovedKind::Cash => after::ValueRemovedKind::Unknown(2);
            << after::ValueRemovedKind::Card => before::ValueRemovedKind::Card;),
        "value_renamed" => one!(ValueRenamed.x:
            >> before::ValueRenamedKind::Card => after::ValueRenamedKind::CreditCard;
            << after::ValueRenamedKind::CreditCard => before::ValueRenamedKind::Card;),
        "values_swapped" => one!(ValuesSwapped.x:
            >> before::ValuesSwappedKind::Card => after::ValuesSwappedKind::Card;
            << after::ValuesSwappedKind::Card => before::ValuesSwappedKind::Card;),
        "value_moved" => one!(ValueMoved.x:
            >> before::ValueMovedKind::Card => after::ValueMovedKind::Card;
            << after::ValueMovedKind::Card => before::ValueMovedKind::Card;),
        "enum_widened" => {
            use after::EnumWidenedKind as New;
            use before::EnumWidenedKind as Old;
            vec![
                Way::of(
                    before::EnumWidened {
                        x: Old::Card,
                        y: 7,
                        z: vec![Old::Card; 3],
                    },
                    &after::EnumWidened {
                        x: New::Card,
                        y: 7,
                        z: vec![New::Card; 3],
                    },
                ),
                Way::of(
                    after::EnumWidened {
                        x: New::Card,
                        y: 7,
                        z: vec![New::Card; 3],
                    },
                    &before::EnumWidened {
                        x: Old::Card,
                        y: 7,
                        z: vec![Old::Card; 3],
                    },
                ),
            ]
        }
        "enum_renamed" => one!(EnumRenamed.x:
            >> before::EnumRenamedKind::Card => after::EnumRenamedSort::Card;
            << after::EnumRenamedSort::Card => before::EnumRenamedKind::Card;),
        "enum_of_other_meaning" => one!(EnumOfOtherMeaning.x:
            // A card is nothing that is large.
            >> before::EnumOfOtherMeaningKind::Card => after::EnumOfOtherMeaningSort::Unspecified;
            << after::EnumOfOtherMeaningSort::Large => before::EnumOfOtherMeaningKind::Unspecified;),
        "enum_became_message" => one!(EnumBecameMessage.x:
            >> before::EnumBecameMessageKind::Card => Some(after::EnumBecameMessageKind { card: true });
            << Some(after::EnumBecameMessageKind { card: true }) => before::EnumBecameMessageKind::Card;),
        "struct_grew" => one!(StructGrew.at:
            >> vec![before::StructGrewPoint { x: 1.0 }] => vec![after::StructGrewPoint { x: 1.0, y: 0.0 }];
            << vec![after::StructGrewPoint { x: 1.0, y: 2.0 }; 2] => vec![before::StructGrewPoint { x: 1.0 }; 2];),
        "struct_widened" => one!(StructWidened.at:
            >> before::StructWidenedPoint { x: 1, y: 2 } => after::StructWidenedPoint { x: 1, y: 2 };
            << after::StructWidenedPoint { x: 1, y: 2 } => before::StructWidenedPoint { x: 1, y: 2 };),
        "struct_field_renamed" => one!(StructFieldRenamed.at:
            >> before::StructFieldRenamedPoint { x: 1.0, y: 2.0 } => after::StructFieldRenamedPoint { x: 1.0, height: 2.0 };
            << after::StructFieldRenamedPoint { x: 1.0, height: 2.0 } => before::StructFieldRenamedPoint { x: 1.0, y: 2.0 };),
        "struct_fields_swapped" => one!(StructFieldsSwapped.at:
            >> before::StructFieldsSwappedPoint { x: 1.0, y: 2.0 } => after::StructFieldsSwappedPoint { x: 1.0, y: 2.0 };
            << after::StructFieldsSwappedPoint { x: 1.0, y: 2.0 } => before::StructFieldsSwappedPoint { x: 1.0, y: 2.0 };),
        "struct_retyped" => {
            let new = || after::StructRetypedSpan {
                from: Timestamp::from_micros(-1),
                lasts: SignedDuration::from_micros(2),
            };
            one!(StructRetyped.at:
                >> before::StructRetypedSpan { from: -1, lasts: 2 } => new();
                << new() => before::StructRetypedSpan { from: -1, lasts: 2 };)
        }
        "member_added" => one!(MemberAdded.x:
            >> Some(before::MemberAddedChoice::MemberAddedCard(before::MemberAddedCard { number: text() }))
                => Some(after::MemberAddedChoice::MemberAddedCard(after::MemberAddedCard { number: text() }));
            << Some(after::MemberAddedChoice::MemberAddedCash(after::MemberAddedCash { cents: 7 }))
                => Some(before::MemberAddedChoice::Unknown(2));),
        "member_removed" => one!(MemberRemoved.x:
            >> Some(before::MemberRemovedChoice::MemberRemovedCash(before::MemberRemovedCash { cents: 7 }))
                => Some(after::MemberRemovedChoice::Unknown(2));
            << Some(after::MemberRemovedChoice::MemberRemovedCard(after::MemberRemovedCard { number: text() }))
                => Some(before::MemberRemovedChoice::MemberRemovedCard(before::MemberRemovedCard { number: text() }));),
        "members_swapped" => one!(MembersSwapped.x:
            >> Some(before::MembersSwappedChoice::MembersSwappedCard(before::MembersSwappedCard { number: text() }))
                => Some(after::MembersSwappedChoice::MembersSwappedCard(after::MembersSwappedCard { number: text() }));
            << Some(after::MembersSwappedChoice::MembersSwappedCash(after::MembersSwappedCash { cents: 7 }))
                => Some(before::MembersSwappedChoice::MembersSwappedCash(before::MembersSwappedCash { cents: 7 }));),
        "member_renamed" => one!(MemberRenamed.x:
            >> Some(before::MemberRenamedChoice::MemberRenamedCard(before::MemberRenamedCard { number: text() }))
                => Some(after::MemberRenamedChoice::MemberRenamedCreditCard(after::MemberRenamedCreditCard { number: text() }));
            << Some(after::MemberRenamedChoice::MemberRenamedCreditCard(after::MemberRenamedCreditCard { number: text() }))
                => Some(before::MemberRenamedChoice::MemberRenamedCard(before::MemberRenamedCard { number: text() }));),
        "message_renamed" => {
            let old = || {
                Some(before::MessageRenamedItem {
                    name: text(),
                    parts: vec![before::MessageRenamedItem::default()],
                })
            };
            let new = || {
                Some(after::MessageRenamedArticle {
                    name: text(),
                    parts: vec![after::MessageRenamedArticle::default()],
                })
            };
            one!(MessageRenamed.x: >> old() => new(); << new() => old();)
        }
        "message_replaced" => one!(MessageReplaced.x:
            >> Some(before::MessageReplacedItem { name: text() }) => Some(after::MessageReplacedOther::default());
            << Some(after::MessageReplacedOther { cents: u64::MAX }) => Some(before::MessageReplacedItem::default());),
        "message_unused_is_gone" => one!(MessageUnusedIsGone.x: >> 7 => 7; << 7 => 7;),
        "nested_breaks" => one!(NestedBreaks.list:
            >> vec![before::NestedBreaksInner { x: 7 }] => vec![after::NestedBreaksInner { x: "7".to_owned() }];
            << vec![after::NestedBreaksInner { x: text() }] => vec![before::NestedBreaksInner::default()];),
        _ => return None,
    })
}
