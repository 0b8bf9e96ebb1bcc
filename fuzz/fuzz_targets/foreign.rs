//! The fuzzer's entry to `orthant_fuzz::import::foreign`, which says what it checks. Must not do more.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| orthant_fuzz::import::foreign(bytes));
