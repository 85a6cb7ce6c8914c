//! libFuzzer's way to `zlink_fuzz::LINK`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| zlink_fuzz::LINK.run(input));
