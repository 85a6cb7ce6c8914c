//! libFuzzer's way to `zlink_fuzz::CODEC`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| zlink_fuzz::CODEC.run(input));
