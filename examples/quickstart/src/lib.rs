//! The README as documentation, so that its code is compiled and run with the other doc tests.

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
