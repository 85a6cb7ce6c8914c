//! Many callers that race for IDs that nobody has yet, from three processes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use zlink_generated::arena::*;
use zlink_runtime::error::CallError;
use zlink_runtime::prelude::*;

use crate::node::Timing;
use crate::objects::SAID;
use crate::stage::{LIMIT, Node, Shared, Stage, linked};

/// The carts of a caller: two, which it shares with others.
fn carts_of(caller: usize, ids: usize) -> [usize; 2] {
    [caller % ids, (caller * 7 + caller / ids * 31 + 1) % ids]
}

fn marker(caller: usize, number: usize) -> String {
    format!("<{caller}:{number}>")
}

/// Every `step`th caller from `first` on: each sends its messages one after another, sends and requests by turns, to its
/// carts by turns.
pub(crate) async fn call(host: &Host, numbers: [usize; 5]) -> Result<String, CallError> {
    let [first, step, callers, ids, messages] = numbers;
    let mut calling = tokio::task::JoinSet::new();
    for caller in (first..callers).step_by(step) {
        let carts = cart_spots(host);
        calling.spawn(async move {
            for number in 0..messages {
                let cart = carts.of(format!("cart-{}", carts_of(caller, ids)[number / 2 % 2]));
                let text = marker(caller, number);
                if (caller + number) % 2 == 0 {
                    cart.add(AddItem { item: text, count: 1 }).activating().await?;
                } else {
                    cart.peek(Look {}).metadata(SAID, text).activating().await?;
                }
            }
            Ok::<_, CallError>(())
        });
    }
    while let Some(ended) = calling.join_next().await {
        ended.unwrap()?;
    }
    Ok("done".to_owned())
}

/// The message that each cart was reserved by, as the store has it.
async fn winners(stage: &Stage, ids: usize) -> BTreeMap<usize, String> {
    let began = Instant::now();
    let stored = loop {
        let mut stored = stage.stored("s:").await;
        stored.retain(|(key, _)| key.as_str().contains(":cart-"));
        if stored.len() == ids {
            break stored;
        }
        assert!(began.elapsed() < LIMIT, "{} of {ids} are reserved", stored.len());
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    // A byte of the record around it may be the same as the first of it.
    let message = |value: &[u8]| -> Option<String> {
        let text = String::from_utf8_lossy(value);
        text.split('<').find_map(|rest| {
            let (caller, number) = rest.split_once('>')?.0.split_once(':')?;
            Some(marker(caller.parse().ok()?, number.parse().ok()?))
        })
    };
    let all = stored.iter().map(|(key, stored)| {
        let (_, id) = key.as_str().split_once(":cart-").unwrap();
        let message = message(&stored.value).unwrap();
        (id.parse().unwrap(), message)
    });
    all.collect()
}

async fn race(shared: Shared, callers: usize, ids: usize, messages: usize) {
    let stage = Stage::new(shared, Timing::Patient);
    let mut nodes: Vec<Node> = ["one", "two", "three"].map(|name| stage.start_held(name)).into();
    linked(&mut nodes);
    let began = Instant::now();
    let calling: Vec<u64> = (0..nodes.len())
        .map(|at| nodes[at].begin(&format!("crowd {at} {} {callers} {ids} {messages}", 3)))
        .collect();
    // Factories wait, so that all that can race does.
    let winners = winners(&stage, ids).await;
    let reserved = began.elapsed();
    for node in &mut nodes {
        node.ask("unhold").ok();
    }
    for (node, number) in nodes.iter_mut().zip(calling) {
        node.answer(number).ok();
    }
    // A send has ended once it is accepted; its handler runs later.
    let turns = |nodes: &[Node]| -> Vec<(usize, usize, String)> {
        let ran = nodes.iter().enumerate().flat_map(|(at, node)| {
            let turns = node.ran().into_iter().map(move |entry| (at, entry));
            turns.collect::<Vec<_>>()
        });
        let turn = |(at, entry): (usize, crate::journal::Entry)| {
            let rest = entry.what.strip_prefix("turn cart-")?;
            let (id, message) = rest.split_once(' ')?;
            Some((at, id.parse().ok()?, message.to_owned()))
        };
        ran.filter_map(turn).collect()
    };
    let all = callers * messages;
    while turns(&nodes).len() < all {
        assert!(
            began.elapsed() < 2 * LIMIT,
            "{} of {all} were handled",
            turns(&nodes).len()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    let took = began.elapsed();

    let mut owners = BTreeMap::new();
    for (at, node) in nodes.iter().enumerate() {
        for entry in node.ran() {
            if let Some(id) = entry.what.strip_prefix("activate cart-") {
                let other = owners.insert(id.parse::<usize>().unwrap(), at);
                assert_eq!(other, None, "the factory of {id} ran twice");
            }
        }
    }
    assert_eq!(owners.len(), ids);
    let turns = turns(&nodes);
    let different: BTreeSet<_> = turns.iter().map(|(_, _, message)| message).collect();
    assert_eq!((turns.len(), different.len()), (all, all), "every message once");
    let mut first = BTreeMap::new();
    let mut last: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for (at, id, message) in &turns {
        assert_eq!(owners[id], *at, "{message} ran beside the owner of cart-{id}");
        first.entry(*id).or_insert_with(|| message.clone());
        let (caller, number) = message.trim_matches(['<', '>']).split_once(':').unwrap();
        let (caller, number) = (caller.parse().unwrap(), number.parse().unwrap());
        let before = last.insert((*id, caller), number);
        assert!(
            before.is_none_or(|before| before < number),
            "cart-{id}: {message} after {before:?}"
        );
    }
    assert_eq!(first, winners, "what a cart was reserved by comes first");
    let spread: Vec<usize> = (0..nodes.len())
        .map(|at| owners.values().filter(|owner| **owner == at).count())
        .collect();
    println!(
        "{callers} callers, {ids} IDs on three processes {spread:?}: reserved after {reserved:?}, {all} messages after {took:?}"
    );
    nodes.into_iter().for_each(Node::shut_down);
}

/// REQ: SP-065, SP-067, SP-068, LS-041
#[tokio::test]
async fn of_a_thousand_callers_in_three_processes_one_makes_each_cart_on_sqlite() {
    race(Shared::Sqlite, 1_000, 100, 12).await;
}

/// REQ: SP-065, SP-067, SP-068, LS-041
#[tokio::test]
async fn of_a_thousand_callers_in_three_processes_one_makes_each_cart_on_redis() {
    race(Shared::redis(), 1_000, 100, 12).await;
}

#[tokio::test]
#[ignore = "a soak: `make soak` runs it"]
async fn soak_of_many_callers_in_three_processes_one_makes_each_cart() {
    for _ in 0..5 {
        race(Shared::Sqlite, 3_000, 500, 20).await;
        race(Shared::redis(), 3_000, 500, 20).await;
    }
}
