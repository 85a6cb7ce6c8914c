//! Every order in which a few small objects, sources and links can go on, over the real permits with 1, 2 and 3 of them:
//! some job can start, or nothing waits. Where the contract leaves a cycle to a deadline, that and nothing else ends it.

mod world;

use std::collections::HashSet;
use std::fmt::{self, Write as _};

use world::{Action, Code, Do, Fault, World};

use Do::{Ask, Remote, Send};

/// What begins with so many permits on each host.
type Scene = fn(u32) -> World;

/// Which states are gone through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Search {
    /// All of them.
    Whole,
    /// One of those that only differ in names; and where two steps do not touch the same, one order of them.
    Reduced,
}

/// What a search has seen.
#[derive(Default)]
struct Seen {
    states: HashSet<Code>,
    steps: usize,
    /// States in which nothing moved any more but time.
    left_to_time: HashSet<Code>,
    ends: HashSet<Code>,
}

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (states, time, ends) = (self.states.len(), self.left_to_time.len(), self.ends.len());
        let steps = self.steps;
        write!(
            f,
            "{states} states by {steps} steps, {time} of them left to time, {ends} ends"
        )
    }
}

impl Search {
    /// Goes through the states that `build` can come to; where one is stuck, that.
    fn run(self, name: &str, build: impl Fn() -> World) -> Result<Seen, String> {
        let symmetries = build().symmetries();
        let names = match self {
            Self::Whole => build().unrenamed(),
            Self::Reduced => symmetries.clone(),
        };
        let mut seen = Seen::default();
        let mut open: Vec<Vec<Action>> = vec![Vec::new()];
        while let Some(mut path) = open.pop() {
            let mut world = build();
            path.iter().for_each(|action| world.act(*action));
            while seen.states.insert(world.code(&names)) {
                if !world.is_sound() {
                    return Err(told(name, "too many permits are in use", &path, &world));
                }
                let mut actions = world.enabled();
                if actions.is_empty() {
                    // Both ways of searching have to come to all of these.
                    let code = world.code(&symmetries);
                    if world.is_done() {
                        if !world.is_at_rest() {
                            return Err(told(name, "something is left at the end", &path, &world));
                        }
                        seen.ends.insert(code);
                        break;
                    }
                    actions = world.deadlines();
                    if actions.is_empty() {
                        return Err(told(name, "nothing can go on, and something waits", &path, &world));
                    }
                    seen.left_to_time.insert(code);
                } else if self == Self::Reduced {
                    actions = world.enough(&actions);
                }
                let Some((next, others)) = actions.split_first() else {
                    break;
                };
                seen.steps += actions.len();
                open.extend(others.iter().map(|other| path.iter().chain([other]).copied().collect()));
                world.act(*next);
                path.push(*next);
            }
        }
        if seen.ends.is_empty() {
            return Err(format!("{name}: it never ends"));
        }
        println!("{name}: {self:?}, {} names: {seen:?}", names.len());
        Ok(seen)
    }
}

impl Seen {
    fn is_left_to_time(&self) -> bool {
        !self.left_to_time.is_empty()
    }
}

/// Goes through the states that `build` can come to.
fn search(name: &str, build: impl Fn() -> World) -> Seen {
    Search::Reduced
        .run(name, build)
        .unwrap_or_else(|stuck| panic!("{stuck}"))
}

fn told(name: &str, what: &str, path: &[Action], world: &World) -> String {
    let mut text = format!("{name}: {what}\n{world:#?}\n");
    for action in path {
        let _ = writeln!(text, "  {action:?}");
    }
    text
}

/// For each M, whether anything was left to time.
fn for_each_m(name: &str, build: impl Fn(u32) -> World) -> [bool; 3] {
    [1, 2, 3].map(|max| search(&format!("{name}, M = {max}"), || build(max)).is_left_to_time())
}

/// The reduced search comes to exactly the states that the whole one does in which nothing moves any more, for all scenes
/// that are small enough for that.
#[test]
fn the_reduced_search_misses_no_state_in_which_nothing_moves() {
    let scenes: [(&str, Scene, u32); 7] = [
        ("1:N", deliveries, 3),
        ("backlogs", backlogs, 3),
        ("busy", busy, 8),
        ("cycle", cycle, 4),
        ("request", request, 3),
        ("two hosts", two_hosts, 1),
        ("chain", chain, 3),
    ];
    let (mut whole_states, mut reduced_states) = (0, 0);
    let mut compare = |name: &str, build: &dyn Fn() -> World| {
        let [whole, reduced] = [Search::Whole, Search::Reduced].map(|search| search.run(name, build).unwrap());
        assert_eq!(whole.left_to_time, reduced.left_to_time, "{name}");
        assert_eq!(whole.ends, reduced.ends, "{name}");
        whole_states += whole.states.len();
        reduced_states += reduced.states.len();
    };
    for (name, build, most) in scenes {
        for max in 1..=most {
            compare(&format!("{name}, M = {max}"), &|| build(max));
        }
    }
    compare("two-host cycle, M = [1, 1]", &|| two_host_cycle([1, 1]));
    assert!(reduced_states * 2 < whole_states, "{reduced_states} of {whole_states}");
}

/// Each fault breaks one rule, and either search finds it.
#[test]
fn planted_faults_are_found() {
    let faults: [(Fault, Scene); 3] = [
        (Fault::Hoards, deliveries),
        (Fault::KeepsWhatIsHeld, backlogs),
        (Fault::ForgetsToResume, two_hosts),
    ];
    for (fault, build) in faults {
        for search in [Search::Whole, Search::Reduced] {
            let found = search.run(&format!("{fault:?}"), || build(1).with_fault(fault));
            let stuck = found.expect_err("it is not found");
            println!("{search:?}: {}", stuck.lines().next().unwrap_or_default());
        }
    }
}

/// REQ: PM-23, PM-22, PM-33, PM-60
#[test]
fn deliveries_to_many() {
    assert_eq!(for_each_m("1:N", deliveries), [false; 3]);
}

/// Two objects open behind their backlogs while others send to them directly. What comes before one is open is held
/// without a permit: with one, it could keep the object from the permit that it needs to open.
///
/// REQ: PM-39, PM-38, PM-60
#[test]
fn restored_backlogs() {
    assert_eq!(for_each_m("backlogs", backlogs), [false; 3]);
}

/// A flood at an object whose turns send to another one. Below eight permits none is kept for them, and where its queue
/// holds them all only the send's deadline is left; with eight, one is kept, and nothing waits for time.
///
/// REQ: PM-64, PM-60
#[test]
fn a_busy_object_that_sends_to_others() {
    assert_eq!(for_each_m("busy", busy), [true; 3]);
    for max in [8, 10, 16] {
        assert!(!search(&format!("busy, M = {max}"), || busy(max)).is_left_to_time());
    }
    // A send to a hundred others, one after the other, with one permit kept.
    let many = |max: u32| {
        let mut world = World::new(&[max]);
        let busy = world.owner(0);
        let others: Vec<Do> = (0..100).map(|_| Send(world.owner(0))).collect();
        let others: &'static [Do] = others.leak();
        world.flood(0, busy, max + 1, others);
        world
    };
    let mut world = many(8);
    let mut deadlines = 0;
    // One order of it: all of them are too many.
    loop {
        let actions = world.enabled();
        let next = actions.last().copied().or_else(|| world.deadlines().first().copied());
        deadlines += usize::from(actions.is_empty() && next.is_some());
        match next {
            Some(next) => world.act(next),
            None => break,
        }
        assert!(world.is_sound());
    }
    assert!(world.is_done() && deadlines == 0);
}

/// Two objects whose turns send to each other: what is kept for them is used up by their own cycle.
///
/// REQ: PM-64, EX-83
#[test]
fn a_cycle_of_two_objects_is_left_to_the_deadline_of_their_sends() {
    assert_eq!(for_each_m("cycle", cycle), [true; 3]);
    assert!(search("cycle, M = 8", || cycle(8)).is_left_to_time());
}

/// A turn that asks another object of its host, behind what waits there: a reply or the deadline, and once.
///
/// REQ: PM-63
#[test]
fn a_request_from_a_turn_ends_with_its_reply_or_its_deadline() {
    assert_eq!(for_each_m("request", request), [true, false, false]);
}

/// Two hosts that have each other's requests, and each more of its own than it has permits: both pause, both go on.
///
/// REQ: PM-60, PM-90, PM-91
#[test]
fn two_hosts_that_pause_each_other_go_on() {
    assert_eq!(for_each_m("two hosts", two_hosts), [false; 3]);
}

/// A host whose turns send to the other one, which works for itself: the other one always comes back.
///
/// REQ: PM-60
#[test]
fn a_chain_over_two_hosts_needs_no_deadline() {
    assert_eq!(for_each_m("chain", chain), [false; 3]);
}

/// The cycle that the contract leaves to the deadline: on each host a turn that sends to the other one, behind which its own
/// queue holds all permits. Whatever their number, it comes to that, and nothing but the deadline ends it.
///
/// REQ: EX-83
#[test]
fn a_cycle_over_two_hosts_is_left_to_the_deadline_of_their_sends() {
    two_host_cycles(&[[1, 1], [2, 1]]);
}

/// REQ: EX-83
#[test]
#[ignore = "a soak: a million states, seconds in release"]
fn soak_a_cycle_over_two_hosts_with_up_to_three_permits_each() {
    two_host_cycles(&[[2, 2], [3, 1], [3, 2], [3, 3]]);
}

fn two_host_cycles(permits: &[[u32; 2]]) {
    for max in permits {
        let seen = search(&format!("two-host cycle, M = {max:?}"), || two_host_cycle(*max));
        assert!(seen.is_left_to_time());
    }
}

/// Each host has one job more than permits, and each of its turns sends twice.
fn two_host_cycle(max: [u32; 2]) -> World {
    let mut world = World::new(&max);
    assert_eq!((world.owner(0), world.owner(1)), (0, 1));
    world.link(0, 1, 1);
    world.link(1, 0, 1);
    world.flood(0, 0, max[0] + 1, &[Remote(1), Remote(1)]);
    world.flood(1, 1, max[1] + 1, &[Remote(0), Remote(0)]);
    world
}

fn deliveries(max: u32) -> World {
    let mut world = World::new(&[max]);
    let owners = [(); 3].map(|()| world.owner(0));
    world.source(0, &[(&owners, &[])]);
    world.source(0, &[(&owners, &[])]);
    world.source(0, &[(&owners[..1], &[])]);
    world
}

fn backlogs(max: u32) -> World {
    let mut world = World::new(&[max]);
    let (one, two) = (world.owner(0), world.owner(0));
    world.restore(one, &[&[], &[], &[]]);
    world.restore(two, &[&[], &[]]);
    world.source(0, &[(&[one], &[]), (&[one, two], &[]), (&[one], &[])]);
    world.source(0, &[(&[two], &[])]);
    world
}

fn busy(max: u32) -> World {
    let mut world = World::new(&[max]);
    let (busy, other) = (world.owner(0), world.owner(0));
    assert_eq!(other, 1);
    world.flood(0, busy, max + 1, &[Send(1)]);
    world
}

fn cycle(max: u32) -> World {
    let mut world = World::new(&[max]);
    let (one, two) = (world.owner(0), world.owner(0));
    assert_eq!((one, two), (0, 1));
    world.flood(0, one, max, &[Send(1)]);
    world.source(0, &[(&[two], &[Send(0), Send(0)])]);
    world
}

fn request(max: u32) -> World {
    let mut world = World::new(&[max]);
    let (asks, asked) = (world.owner(0), world.owner(0));
    assert_eq!(asked, 1);
    world.source(0, &[(&[asks], &[Ask(1)]), (&[asks], &[])]);
    world.source(0, &[(&[asked], &[])]);
    world
}

fn two_hosts(max: u32) -> World {
    let mut world = World::new(&[max, max]);
    let (here, there) = (world.owner(0), world.owner(1));
    world.link(0, 1, 1);
    world.link(1, 0, 1);
    world.source(0, &[(&[there], &[]), (&[there], &[]), (&[here], &[]), (&[here], &[])]);
    world.source(1, &[(&[here], &[]), (&[here], &[]), (&[there], &[])]);
    world
}

fn chain(max: u32) -> World {
    let mut world = World::new(&[max, max]);
    let (first, last) = (world.owner(0), world.owner(1));
    assert_eq!(last, 1);
    world.link(0, 1, 1);
    world.flood(0, first, max + 1, &[Remote(1)]);
    world.source(1, &[(&[last], &[]), (&[last], &[])]);
    world
}
