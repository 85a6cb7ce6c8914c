//! libFuzzer's way to `zlink_fuzz::RECORD`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| zlink_fuzz::RECORD.run(input));
