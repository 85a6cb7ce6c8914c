//! How many Spots and Actors a node has: what the counters in the store say, and what a batch makes of them. Pure.
//!
//! Only a node's own host writes its counters while it lives, so what it knows of them is what they are, until a conflict
//! tells more.

use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::num::NonZeroU32;

use bytes::Bytes;
use rustc_hash::FxHashMap;

use super::record::Nonce;
use crate::error::ArgumentError;
use crate::id::{ObjectKind, Rid, SpotType};
use crate::location::name;
use crate::location::{Condition, Key, Mutation, Revision, Stored};
use crate::message::codec;
use crate::wire;

/// How many Spots, or how many Actors, a node may have, Creating and Ready together. No limit where `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Of all types.
    pub(crate) all: Option<NonZeroU32>,
    /// Of the type in question.
    pub(crate) of_type: Option<NonZeroU32>,
}

/// What one counter says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) active: u32,
    pub(crate) reserved: u32,
}

/// What a change does to the counters of its Spot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Reserve(Limits),
    Commit,
    /// A reservation ends.
    Return,
    /// A Ready one ends.
    Remove,
}

impl Counts {
    /// The counts after `step`; `None` where the limit forbids it.
    fn after(self, step: Step, limit: Option<NonZeroU32>) -> Option<Self> {
        let Self { active, reserved } = self;
        Some(match step {
            Step::Reserve(_) => {
                let all = active.saturating_add(reserved);
                if all >= limit.map_or(u32::MAX, NonZeroU32::get) {
                    return None;
                }
                Self {
                    active,
                    reserved: reserved + 1,
                }
            }
            Step::Commit => Self {
                active: active.saturating_add(1),
                reserved: reserved.saturating_sub(1),
            },
            Step::Return => Self {
                active,
                reserved: reserved.saturating_sub(1),
            },
            Step::Remove => Self {
                active: active.saturating_sub(1),
                reserved,
            },
        })
    }

    /// Whether there is nothing to be counted.
    fn is_none(self) -> bool {
        self == Self::default()
    }

    fn to_value(self, nonce: Nonce) -> Result<Bytes, ArgumentError> {
        let value = wire::Capacity {
            nonce: nonce.to_le_bytes().to_vec(),
            active: self.active,
            reserved: self.reserved,
        };
        codec::encode(&value, Bytes::copy_from_slice).map_err(|error| ArgumentError::new("capacity", error.to_string()))
    }

    /// What a value says; nothing where it is no counter.
    pub(super) fn read(stored: &Stored) -> Option<Self> {
        let value = codec::decode::<wire::Capacity>(&stored.value).ok()?;
        Some(Self {
            active: value.active,
            reserved: value.reserved,
        })
    }
}

/// The counters that one object is in: of its space on its node, and of its type there. Entry Spots are in none.
fn keys(node: &Rid, kind: ObjectKind, of_type: &SpotType) -> Result<Option<[Key; 2]>, ArgumentError> {
    if kind == ObjectKind::Entry {
        return Ok(None);
    }
    Ok(Some([
        name::capacity_key(node, kind.space())?,
        name::type_capacity_key(node, kind, of_type)?,
    ]))
}

/// The keys of the counters that were asked for, as often as they are: those of this host's nodes and types.
#[derive(Debug, Default)]
pub(super) struct Named(FxHashMap<(Rid, ObjectKind, SpotType), Option<[Key; 2]>>);

impl Named {
    /// As [`keys`].
    pub(super) fn keys(
        &mut self,
        node: &Rid,
        kind: ObjectKind,
        of_type: &SpotType,
    ) -> Result<Option<[Key; 2]>, ArgumentError> {
        Ok(match self.0.entry((node.clone(), kind, of_type.clone())) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(place) => place.insert(keys(node, kind, of_type)?).clone(),
        })
    }
}

/// What stands in the store, as far as this host knows.
#[derive(Debug, Default)]
pub(super) struct Counters(BTreeMap<Key, (Revision, Counts)>);

/// What a batch makes of some counters.
#[derive(Debug, Default)]
pub(super) struct Tally(BTreeMap<Key, Counts>);

impl Counters {
    /// Those counters were read.
    pub(super) fn found(&mut self, key: Key, stored: Option<&Stored>) {
        match stored.map(|stored| (stored.revision, Counts::read(stored).unwrap_or_default())) {
            Some(found) => self.0.insert(key, found),
            None => self.0.remove(&key),
        };
    }

    /// That batch was applied.
    pub(super) fn applied(&mut self, tally: Tally, revision: Revision) {
        for (key, counts) in tally.0 {
            match counts.is_none() {
                true => self.0.remove(&key),
                false => self.0.insert(key, (revision, counts)),
            };
        }
    }
}

impl Tally {
    /// Adds `step` to both counters of a Spot. Returns whether the limits allow it; nothing has changed where not.
    pub(super) fn take(&mut self, counters: &Counters, keys: [Key; 2], step: Step) -> bool {
        let limits = match step {
            Step::Reserve(limits) => limits,
            _ => Limits::default(),
        };
        let now = keys.each_ref().map(|key| {
            let stored = || counters.0.get(key).map(|(_, counts)| *counts);
            self.0.get(key).copied().or_else(stored).unwrap_or_default()
        });
        let [all, of_type] = now;
        let (Some(all), Some(of_type)) = (all.after(step, limits.all), of_type.after(step, limits.of_type)) else {
            return false;
        };
        self.0.extend(keys.into_iter().zip([all, of_type]));
        true
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.0.keys()
    }

    /// What a batch must hold for it.
    ///
    /// # Errors
    /// Where a counter cannot be encoded.
    pub(super) fn batched(
        &self,
        counters: &Counters,
        nonce: Nonce,
        conditions: &mut Vec<Condition>,
        mutations: &mut Vec<Mutation>,
    ) -> Result<(), ArgumentError> {
        for (key, counts) in &self.0 {
            conditions.push(match counters.0.get(key) {
                Some((revision, _)) => Condition::Version(key.clone(), *revision),
                None => Condition::Missing(key.clone()),
            });
            // A counter of nothing says no more than none, and nodes come and go.
            mutations.push(match counts.is_none() {
                true => Mutation::Delete(key.clone()),
                false => Mutation::put(key.clone(), counts.to_value(nonce)?),
            });
        }
        Ok(())
    }
}
