//! Every path picks in the order of smooth weighted round-robin, whatever becomes of its candidates.

use std::collections::BTreeMap;

use zlink_generated::contract::{ORDERS, STOCK};
use zlink_runtime::prelude::*;
use zlink_runtime::testing::{Selection, selections};

/// Follows every path of a host pick by pick. Returns how many picks there were.
pub(crate) fn check(name: &str, host: &Host) -> usize {
    [ORDERS, STOCK]
        .iter()
        .map(|channel| follow(&format!("{name} {channel}"), &selections(host, channel)))
        .sum()
}

fn follow(path: &str, steps: &[Selection]) -> usize {
    let mut credits: BTreeMap<&Rid, (i64, i64)> = BTreeMap::new();
    let mut picks = 0;
    for (at, step) in steps.iter().enumerate() {
        match step {
            Selection::Candidates(candidates) => {
                let next = candidates.iter().map(|(rid, weight)| {
                    let credit = credits.get(rid).map_or(0, |(credit, _)| *credit);
                    (rid, (credit, i64::from(*weight)))
                });
                credits = next.collect();
            }
            Selection::Picked(picked) => {
                let total: i64 = credits.values().map(|(_, weight)| weight).sum();
                credits.values_mut().for_each(|(credit, weight)| *credit += *weight);
                // Of equals the smaller RID: the map is in that order, and only a greater credit displaces.
                let mut expected: Option<(&Rid, i64)> = None;
                for (rid, (credit, _)) in &credits {
                    if expected.is_none_or(|(_, most)| *credit > most) {
                        expected = Some((rid, *credit));
                    }
                }
                let expected = expected.map(|(rid, _)| rid);
                assert_eq!(picked.as_ref(), expected, "{path}, step {at} of {steps:?}");
                if let Some((credit, _)) = expected.and_then(|rid| credits.get_mut(rid)) {
                    *credit -= total;
                    picks += 1;
                }
            }
        }
    }
    picks
}
