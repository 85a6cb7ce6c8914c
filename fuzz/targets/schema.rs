//! libFuzzer's way to `zlink_fuzz::SCHEMA`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| zlink_fuzz::SCHEMA.run(input));
