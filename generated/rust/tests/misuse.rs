//! What a schema forbids does not compile, and the compiler's words lead to the mistake.

/// A second terminal, a timeout of a one-way call, a node's handlers on a channel, an answer that is no reply,
/// a handler that wants bytes, a filter that lets a message through twice.
///
/// REQ: CH-102, CH-103, CH-601, CH-605, EX-92, MSG-610
#[test]
fn misuse_is_refused_by_the_compiler() {
    trybuild::TestCases::new().compile_fail("tests/misuse/*.rs");
}

/// REQ: MSG-408
#[test]
fn what_travels_between_nodes_is_not_for_applications() {
    trybuild::TestCases::new().compile_fail("tests/misuse/private/*.rs");
}

/// A state that is borrowed while its turn is given back, a turn that is given back for a send, twice at once, to a task,
/// or where there is none.
///
/// REQ: EX-22, EX-24
#[test]
fn what_a_yield_would_break_is_refused_by_the_compiler() {
    trybuild::TestCases::new().compile_fail("tests/misuse/yields/*.rs");
}

/// What a kind of Spot cannot do has no method: an Entry Spot does not close, an Instance Spot is neither created nor
/// published to, only what the schema says activates. A reference is no target, no borrow of a state outlives a yield, and
/// nobody changes how a Spot runs.
///
/// REQ: SP-003, SP-007, SP-011, SP-027, SP-042, SP-043
#[test]
fn what_a_spot_cannot_do_is_refused_by_the_compiler() {
    trybuild::TestCases::new().compile_fail("tests/misuse/spots/*.rs");
}

/// An event has no metadata, no timeout, no second end and no other message, and who hears it serves no channel.
///
/// REQ: CH-102, CH-103, CH-802
#[test]
fn what_an_event_cannot_have_is_refused_by_the_compiler() {
    trybuild::TestCases::new().compile_fail("tests/misuse/fanouts/*.rs");
}

/// What an Actor is not has no method: it is made with its context alone, in an Entry Spot that decides about it, at a node
/// that nobody names, and ended from outside. A reference is no target, no borrow of a state outlives a yield, and no turn its
/// callback.
///
/// REQ: AC-004, AC-016, AC-050, AC-061, EX-24
#[test]
fn what_an_actor_cannot_do_is_refused_by_the_compiler() {
    trybuild::TestCases::new().compile_fail("tests/misuse/actors/*.rs");
}
