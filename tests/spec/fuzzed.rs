//! Every fuzz target holds on what the repository has of its kind, on inputs that were found before, and on thousands of
//! changes of them. The fuzzer itself goes further: see `fuzz/`. With
//! `ORTHANT_FUZZ_SECONDS` each target is changed and run for as long, where there is no fuzzer.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::disk::Random;
use crate::fuzz_seeds::seeds;
use crate::fuzz_targets::TARGETS;
use crate::support::figure;

/// One change of the kind a fuzzer makes.
fn changed(seed: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len());
        let end = bytes.len().min(at + 1 + random.below(8));
        match random.below(6) {
            0 => bytes.truncate(at),
            1 => drop(bytes.splice(at..at, [u8::try_from(random.below(256)).unwrap()])),
            2 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
            3 if !bytes.is_empty() => {
                bytes[at..end].fill(if random.below(2) == 0 { 0 } else { 0xFF })
            }
            4 => drop(bytes.drain(at..end)),
            _ if !bytes.is_empty() => bytes[at] = u8::try_from(random.below(256)).unwrap(),
            _ => {}
        }
    }
    bytes
}

#[test]
fn fuzz_targets_hold_on_seeds_on_found_inputs_and_on_changes_of_them() {
    let all = seeds(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
    let seconds = std::env::var("ORTHANT_FUZZ_SECONDS").ok();
    let seconds = seconds
        .and_then(|s| s.parse().ok())
        .map(Duration::from_secs);
    for (name, target) in TARGETS {
        let changes: u64 = match name {
            _ if seconds.is_some() => u64::MAX,
            "model" | "crash" => 400,
            "open" | "checksums" | "shard" => 20_000,
            _ => 200_000,
        };
        let seeds: Vec<&Vec<u8>> = all[name].iter().collect();
        seeds.iter().for_each(|seed| target(seed));
        let mut random = Random::new(31);
        let started = Instant::now();
        let mut done = 0;
        while done < changes && seconds.is_none_or(|s| started.elapsed() < s) {
            let seed = seeds[random.below(seeds.len())];
            target(&changed(seed, &mut random));
            done += 1;
        }
        println!("{name}: {} seeds, {done} changes", seeds.len());
        figure(7, name, done + seeds.len() as u64);
    }
}
