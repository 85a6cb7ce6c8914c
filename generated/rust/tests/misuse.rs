//! What a schema forbids does not compile, and the compiler's words lead to the mistake.

/// REQ: MSG-610
#[test]
fn misuse_is_refused_by_the_compiler() {
    trybuild::TestCases::new().compile_fail("tests/misuse/*.rs");
}
