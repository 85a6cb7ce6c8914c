//! The table of records against a model: a list that is searched from one end to the other.

use bytes::Bytes;
use proptest::prelude::*;
use std::time::Duration;

use super::table::Table;
use crate::location::{
    Batch, BlobPut, BlobRef, BlobRenewed, Condition, Key, Mutation, Revision, Scan, StoreError, StoreTime, Written,
};

type Version = (Key, u64, Bytes, Option<u64>);

/// The namespace as a list of (key, revision, value, expiry).
#[derive(Default)]
struct Model {
    records: Vec<Version>,
    last: u64,
}

impl Model {
    fn get(&self, key: &Key, now: u64) -> Option<&Version> {
        let alive = |record: &&Version| record.0 == *key && record.3.is_none_or(|expiry| now < expiry);
        self.records.iter().find(alive)
    }

    fn write(&mut self, batch: &Batch, now: u64) -> Option<u64> {
        for condition in batch.conditions() {
            let found = self.get(condition.key(), now).map(|record| record.1);
            let holds = match condition {
                Condition::Missing(_) => found.is_none(),
                Condition::Version(_, revision) => found == Some(revision.get()),
            };
            if !holds {
                return None;
            }
        }
        self.last += 1;
        for mutation in batch.mutations() {
            self.records.retain(|record| record.0 != *mutation.key());
            if let Mutation::Put { key, value, retention } = mutation {
                let expiry = retention.map(|span| now + u64::try_from(span.as_millis()).unwrap());
                self.records.push((key.clone(), self.last, value.clone(), expiry));
            }
        }
        Some(self.last)
    }
}

#[derive(Clone, Debug)]
enum Step {
    Write(Vec<Condition>, Vec<Mutation>),
    Read(Key),
    Scan(String, usize),
    Wait(u64),
}

fn key() -> impl Strategy<Value = Key> {
    "(a|a/|b/|ü)[01]?".prop_map(|text| Key::new(text).unwrap())
}

fn step() -> impl Strategy<Value = Step> {
    let condition = prop_oneof![
        key().prop_map(Condition::Missing),
        (key(), 1u64..12).prop_map(|(key, number)| Condition::Version(key, Revision::new(number).unwrap())),
    ];
    let mutation = prop_oneof![
        key().prop_map(Mutation::Delete),
        (key(), any::<u8>(), proptest::option::of(1u64..4)).prop_map(|(key, byte, millis)| Mutation::Put {
            key,
            value: Bytes::from(vec![byte]),
            retention: millis.map(Duration::from_millis),
        }),
    ];
    prop_oneof![
        4 => (prop::collection::vec(condition, 0..3), prop::collection::vec(mutation, 1..4))
            .prop_map(|(conditions, mutations)| Step::Write(conditions, mutations)),
        2 => key().prop_map(Step::Read),
        1 => ("(a|a/|b|)", 1usize..4).prop_map(|(prefix, limit)| Step::Scan(prefix, limit)),
        1 => (0u64..3).prop_map(Step::Wait),
    ]
}

proptest! {
    #[test]
    fn any_history_answers_as_the_list_does(steps in prop::collection::vec(step(), 1..60)) {
        let (mut table, mut model, mut now) = (Table::default(), Model::default(), 0);
        for step in steps {
            let time = StoreTime::from_millis(now);
            match step {
                Step::Wait(millis) => now += millis,
                Step::Read(key) => {
                    let found = table.get(&key, time).map(|stored| {
                        let expiry = stored.expiry.map(StoreTime::as_millis);
                        (key.clone(), stored.revision.get(), stored.value.clone(), expiry)
                    });
                    prop_assert_eq!(found.as_ref(), model.get(&key, now));
                }
                Step::Write(conditions, mutations) => {
                    // Two of a key in one list are no batch.
                    let Ok(batch) = Batch::new(conditions, mutations) else { continue };
                    let written = match table.write(&batch, time).unwrap() {
                        Written::Applied { revision, .. } => Some(revision.get()),
                        Written::Conflict => None,
                    };
                    prop_assert_eq!(written, model.write(&batch, now));
                }
                Step::Scan(prefix, limit) => {
                    let mut found = Vec::new();
                    let mut scan = Scan::new(&prefix, limit).unwrap();
                    loop {
                        let page = table.scan(&scan, time).unwrap();
                        prop_assert!(page.entries.len() <= limit);
                        prop_assert_eq!(page.revision.map_or(0, Revision::get), model.last);
                        found.extend(page.entries.into_iter().map(|(key, stored)| (key, stored.revision.get())));
                        let Some(next) = page.next else { break };
                        scan = scan.after(next);
                    }
                    let mut all: Vec<_> = model
                        .records
                        .iter()
                        .filter(|record| record.0.as_str().starts_with(&prefix))
                        .filter_map(|record| model.get(&record.0, now))
                        .map(|record| (record.0.clone(), record.1))
                        .collect();
                    all.sort();
                    prop_assert_eq!(found, all);
                }
            }
        }
    }
}

#[test]
fn after_the_last_revision_nothing_is_written() {
    let mut table = Table::default();
    let now = StoreTime::default();
    let key = Key::new("a").unwrap();
    let put = |value: &'static str| Batch::new([], [Mutation::put(key.clone(), value)]).unwrap();
    table.skip(Revision::new(Revision::MAX.get() - 1).unwrap());
    let last = table.write(&put("last"), now).unwrap();
    assert_eq!(
        last,
        Written::Applied {
            revision: Revision::MAX,
            now
        }
    );
    for _ in 0..2 {
        assert_eq!(table.write(&put("more"), now), Err(StoreError::Exhausted));
    }
    assert_eq!(table.get(&key, now).unwrap().value, "last");
}

#[test]
fn what_expired_is_swept_out() {
    let mut table = Table::default();
    for number in 0..100 {
        let mutation = Mutation::Put {
            key: Key::new(number.to_string()).unwrap(),
            value: Bytes::new(),
            retention: Some(Duration::from_millis(1)),
        };
        let batch = Batch::new([], [mutation]).unwrap();
        let _ = table.write(&batch, StoreTime::from_millis(number * 2)).unwrap();
        assert!(table.len() <= 2, "{} are kept", table.len());
    }
}

#[test]
fn a_blob_is_written_once_and_stays_as_long_as_was_asked() {
    let mut blobs = super::blobs::Blobs::default();
    let at = StoreTime::from_millis;
    let name = BlobRef::new("b").unwrap();
    let put = |blobs: &mut super::blobs::Blobs, bytes: &'static str, now, millis| {
        blobs.put(&name, bytes.into(), at(now), Duration::from_millis(millis))
    };
    assert_eq!(put(&mut blobs, "x", 0, 10), BlobPut::Stored { expiry: at(10) });
    assert_eq!(put(&mut blobs, "x", 1, 5), BlobPut::AlreadyStored { expiry: at(10) });
    assert_eq!(put(&mut blobs, "y", 1, 99), BlobPut::Conflict);
    let renewed = blobs.renew(&name, at(5), Duration::from_millis(10));
    assert_eq!(renewed, BlobRenewed::Renewed { expiry: at(15) });
    assert_eq!(blobs.get(&name, at(14)).unwrap().bytes, "x");
    assert_eq!(blobs.get(&name, at(15)), None);
    assert_eq!(
        blobs.renew(&name, at(15), Duration::from_millis(1)),
        BlobRenewed::Missing
    );
    assert_eq!(put(&mut blobs, "y", 15, 1), BlobPut::Stored { expiry: at(16) });
    blobs.delete(&name);
    blobs.delete(&name);
    assert_eq!(blobs.get(&name, at(15)), None);
}
