//! What a schema forbids does not compile, and the compiler's words lead to the mistake.

/// A second terminal, a timeout of a one-way call, a node's handlers on a channel, an answer that is no reply,
/// a handler that wants bytes, a filter that lets a message through twice.
///
/// REQ: CH-102, CH-103, CH-601, CH-605, EX-92, MSG-610
#[test]
fn misuse_is_refused_by_the_compiler() {
    trybuild::TestCases::new().compile_fail("tests/misuse/*.rs");
}
