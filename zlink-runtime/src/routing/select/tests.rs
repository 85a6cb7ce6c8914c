//! The vectors of the order, and the procedure run per call as the model of everything prepared.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use proptest::prelude::*;

use super::order::{Cycle, Weights};
use super::{Candidate, Selector};
use crate::id::Rid;
use crate::limit::SELECT_STEPS;

fn rid(bytes: impl AsRef<[u8]>) -> Rid {
    Rid::new(bytes).unwrap()
}

fn list<T: Clone>(members: &[(&str, u16)], target: impl Fn(&str) -> T) -> Vec<Candidate<T>> {
    members
        .iter()
        .map(|&(id, weight)| Candidate {
            id: rid(id),
            weight,
            target: target(id),
        })
        .collect()
}

fn selector(members: &[(&str, u16)]) -> Selector<String> {
    let selector = Selector::new();
    selector.update(list(members, str::to_owned));
    selector
}

fn picks(selector: &Selector<String>, count: usize) -> Vec<String> {
    (0..count).map(|_| selector.pick().unwrap()).collect()
}

fn cycle(weights: &[u16], start: &[i64]) -> Option<Cycle> {
    Cycle::find(&Weights::new(weights.to_vec()), start, &mut || true)
}

/// The procedure as it is written, run per call.
#[derive(Default)]
struct Model {
    weights: BTreeMap<Rid, i64>,
    accumulators: BTreeMap<Rid, i64>,
}

impl Model {
    fn update(&mut self, list: impl IntoIterator<Item = (Rid, u16)>) {
        self.weights = list
            .into_iter()
            .filter(|it| it.1 > 0)
            .map(|(id, weight)| (id, weight.into()))
            .collect();
        let weights = &self.weights;
        self.accumulators.retain(|id, _| weights.contains_key(id));
    }

    fn pick(&mut self) -> Option<Rid> {
        let mut best: Option<(&Rid, i64)> = None;
        for (id, weight) in &self.weights {
            let accumulator = self.accumulators.entry(id.clone()).or_default();
            *accumulator += weight;
            if best.is_none_or(|(_, most)| *accumulator > most) {
                best = Some((id, *accumulator));
            }
        }
        let id = best?.0.clone();
        *self.accumulators.entry(id.clone()).or_default() -= self.weights.values().sum::<i64>();
        Some(id)
    }
}

/// REQ: CH-401
#[test]
fn a_heavier_member_is_picked_in_proportion() {
    assert_eq!(
        picks(&selector(&[("A", 100), ("B", 300)]), 8),
        ["B", "A", "B", "B", "B", "A", "B", "B"]
    );
}

/// Calls that found the link of a heavy one lost do not all go to the same of the light ones.
#[test]
fn those_beside_an_ended_one_come_in_turn() {
    let selector = selector(&[("A", 10_000), ("B", 1), ("C", 1), ("D", 1)]);
    let before = picks(&selector, 3);
    let others: Vec<_> = (0..6).map(|_| selector.other(|name| name != "A").unwrap()).collect();
    assert_eq!(others, ["B", "C", "D", "B", "C", "D"]);
    assert_eq!(selector.other(|_| false), None);
    assert_eq!(
        (before, picks(&selector, 3)),
        (vec!["A".to_owned(); 3], vec!["A".to_owned(); 3])
    );
}

/// REQ: CH-402
#[test]
fn ties_go_to_the_smaller_bytes() {
    assert_eq!(picks(&selector(&[("ab", 7), ("a", 7)]), 4), ["a", "ab", "a", "ab"]);
    let selector = Selector::new();
    let member = |byte: u8| Candidate {
        id: rid([byte]),
        weight: 1,
        target: byte,
    };
    selector.update(vec![member(0x80), member(0x7f)]);
    assert_eq!((selector.pick(), selector.pick()), (Some(0x7f), Some(0x80)));
}

/// REQ: CH-403
#[test]
fn many_members_at_the_greatest_weight_stay_proportional() {
    let selector = Selector::new();
    let member = |n: u32| Candidate {
        id: rid(n.to_be_bytes()),
        weight: 10_000,
        target: n,
    };
    selector.update((0..500_000).map(member).collect());
    assert_eq!(
        (0..5).map(|_| selector.pick().unwrap()).collect::<Vec<_>>(),
        [0, 1, 2, 3, 4]
    );
}

/// REQ: CH-404
#[test]
fn credit_ends_with_membership_and_outlives_a_change_of_weight() {
    let back = selector(&[("A", 100), ("B", 300)]);
    assert_eq!(picks(&back, 2), ["B", "A"]);
    back.update(list(&[("A", 100)], str::to_owned));
    back.update(list(&[("A", 100), ("B", 300)], str::to_owned));
    // A kept its −200, B begins anew at 0; with its 200 it would have come three times in a row.
    assert_eq!(picks(&back, 4), ["B", "B", "A", "B"]);

    let heavier = selector(&[("A", 100), ("B", 300)]);
    assert_eq!(picks(&heavier, 1), ["B"]);
    heavier.update(list(&[("A", 300), ("B", 100)], str::to_owned));
    // From 100 and −100; from nothing it would be A, A, B.
    assert_eq!(picks(&heavier, 4), ["A", "A", "A", "B"]);
}

/// REQ: CH-405, CH-406
#[test]
fn equals_alternate_and_nothing_bunches() {
    let equal = picks(&selector(&[("A", 42), ("B", 42)]), 100);
    assert!(equal.windows(2).all(|pair| pair[0] != pair[1]));

    let run = || picks(&selector(&[("A", 100), ("B", 300)]), 800);
    assert_eq!(run(), run());
    assert_eq!(run().iter().filter(|id| *id == "B").count(), 600);
    assert!(
        run()
            .chunks(4)
            .all(|four| four.iter().filter(|id| *id == "A").count() == 1)
    );
}

/// REQ: CH-408
#[test]
fn the_greatest_coprime_weights_have_their_whole_period() {
    let cycle = cycle(&[9_999, 10_000], &[0, 0]).unwrap();
    assert_eq!((cycle.prefix_len(), cycle.period()), (0, 19_999));
}

/// REQ: CH-409
#[test]
fn kept_accumulators_lead_into_the_cycle_by_a_prefix() {
    let cycle = cycle(&[100, 300, 7], &[-5_000, 0, 123]).unwrap();
    assert_eq!((cycle.prefix_len(), cycle.period()), (33, 407));
}

/// REQ: CH-410
#[test]
fn a_search_that_gives_up_leaves_the_order_as_it_is() {
    // Three weights without a common divisor, nearly 30,000 together, from a state off the cycle: too far to search.
    let weights = [9_973, 9_967, 9_949];
    assert!(cycle(&weights, &[-400_000_000, 0, 400_000_000]).is_none());
    assert!(Cycle::find(&Weights::new(vec![1; 3]), &[0; 3], &mut || false).is_none());
    assert!(cycle(&vec![1; SELECT_STEPS + 1], &vec![0; SELECT_STEPS + 1]).is_none());

    let members = [("a", 9_973), ("b", 9_967), ("c", 9_949)];
    let (timely, late) = (selector(&members), Selector::new());
    late.swap(list(&members, str::to_owned));
    late.prepare(&mut || false);
    assert_eq!(picks(&timely, 40_000), picks(&late, 40_000));
}

/// REQ: CH-410, CH-411
#[test]
fn a_cycle_found_late_begins_where_the_calls_have_got_to() {
    for meanwhile in [0, 1, 3, 4, 5, 33, 1_000] {
        let members = [("A", 100), ("B", 300), ("C", 7)];
        let (selector, mut model) = (Selector::new(), Model::default());
        selector.swap(list(&members, str::to_owned));
        model.update(members.map(|(id, weight)| (rid(id), weight)));
        for _ in 0..meanwhile % 7 {
            assert_eq!(rid(selector.pick().unwrap()), model.pick().unwrap());
        }
        let mut left = meanwhile;
        selector.prepare(&mut || {
            // The search goes on while other callers pick.
            for _ in 0..std::mem::take(&mut left) {
                assert_eq!(rid(selector.pick().unwrap()), model.pick().unwrap());
            }
            true
        });
        for _ in 0..2_000 {
            assert_eq!(rid(selector.pick().unwrap()), model.pick().unwrap());
        }
    }
}

#[test]
fn no_member_no_pick() {
    let selector = selector(&[]);
    assert_eq!(selector.pick(), None);
    selector.update(list(&[("A", 0)], str::to_owned));
    assert_eq!(selector.pick(), None);
}

/// A target whose clone, made under the selector's lock, writes down the order of the picks.
struct Logged {
    list: usize,
    id: Rid,
    log: Arc<Mutex<Vec<(usize, Rid)>>>,
}

impl Clone for Logged {
    fn clone(&self) -> Self {
        self.log.lock().push((self.list, self.id.clone()));
        Self {
            list: self.list,
            id: self.id.clone(),
            log: self.log.clone(),
        }
    }
}

/// REQ: CH-407, CH-411
#[test]
fn concurrent_callers_share_one_sequence_across_list_swaps() {
    let lists: Vec<Vec<(Rid, u16)>> = (0..60_u16)
        .map(|n| {
            (0..=n % 5)
                .map(|m| (rid([u8::try_from(m).unwrap()]), 1 + (n * 37 + m * 101) % 300))
                .collect()
        })
        .collect();
    let log = Arc::new(Mutex::new(Vec::new()));
    let selector = Selector::new();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let pickers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        selector.pick();
                        std::thread::yield_now();
                    }
                })
            })
            .collect();
        for (number, list) in lists.iter().enumerate() {
            let member = |(id, weight): &(Rid, u16)| {
                let target = Logged {
                    list: number,
                    id: id.clone(),
                    log: log.clone(),
                };
                Candidate {
                    id: id.clone(),
                    weight: *weight,
                    target,
                }
            };
            // Somebody picks from every list before the next one comes.
            selector.update(list.iter().map(member).collect());
            let before = log.lock().len();
            while log.lock().len() < before + 100 {
                std::thread::yield_now();
            }
        }
        done.store(true, Ordering::Relaxed);
        assert!(pickers.into_iter().all(|picker| picker.join().is_ok()));
    });

    let (mut model, mut current) = (Model::default(), usize::MAX);
    for (place, (number, id)) in log.lock().iter().enumerate() {
        if *number != current {
            assert_eq!(*number, current.wrapping_add(1), "no list is passed over");
            current = *number;
            model.update(lists[current].iter().cloned());
        }
        assert_eq!(model.pick().as_ref(), Some(id), "pick {place}, list {number}");
    }
    assert_eq!(current, lists.len() - 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// REQ: CH-401, CH-404, CH-406, CH-408
    #[test]
    fn what_is_prepared_equals_the_procedure_run_per_call(
        changes in prop::collection::vec(
            (prop::collection::vec((0_u8..8, prop_oneof![0_u16..5, 0_u16..400, Just(100), 9_990_u16..=10_000]), 0..7), 0_usize..900),
            1..6,
        )
    ) {
        let (selector, mut model) = (Selector::new(), Model::default());
        for (list, calls) in changes {
            let list: BTreeMap<u8, u16> = list.into_iter().collect();
            let members = list.iter().rev();
            selector.update(members.map(|(&id, &weight)| Candidate { id: rid([id]), weight, target: rid([id]) }).collect());
            model.update(list.into_iter().map(|(id, weight)| (rid([id]), weight)));
            for _ in 0..calls {
                prop_assert_eq!(selector.pick(), model.pick());
            }
        }
    }

    /// REQ: CH-409
    #[test]
    fn a_cycle_from_any_state_repeats_for_ever(
        members in prop::collection::vec((1_u16..60, -500_i64..500), 1..5)
    ) {
        let (weights, start): (Vec<_>, Vec<_>) = members.into_iter().unzip();
        let cycle = cycle(&weights, &start).unwrap();
        let (weights, mut state, mut cursor) = (Weights::new(weights), start, 0);
        for count in 0..cycle.prefix_len() + 3 * cycle.period() {
            prop_assert_eq!(cycle.after(count), cursor);
            let (index, next) = cycle.at(cursor);
            prop_assert_eq!(weights.step(&mut state), index);
            cursor = next;
        }
    }
}

/// `cargo test --release -p zlink-runtime select::tests::cost -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
fn cost() {
    for members in [1_u32, 2, 10, 100] {
        let selector = Selector::new();
        let member = |n: u32| Candidate {
            id: rid(n.to_be_bytes()),
            weight: 100,
            target: Arc::new(n),
        };
        selector.update((0..members).map(member).collect());
        let start = std::time::Instant::now();
        for _ in 0..10_000_000 {
            std::hint::black_box(selector.pick());
        }
        println!("pick of {members}: {:.1} ns", start.elapsed().as_secs_f64() * 100.0);
    }
    let start = std::time::Instant::now();
    assert!(cycle(&[9_999, 10_000], &[1, -1]).is_some());
    println!("search of 9999/10000 from a kept state: {:?}", start.elapsed());
}
