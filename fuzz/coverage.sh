#!/usr/bin/env bash
# How many lines of the files that read bytes the corpus reaches: one line a file, and the sum. Needs a nightly toolchain
# with llvm-tools and cargo-fuzz.
#
#   fuzz/coverage.sh [TARGET...]      all targets where none is named
set -euo pipefail
cd "$(dirname "$0")/.."
targets=("$@"); [ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(basename -s .rs fuzz/fuzz_targets/*.rs)
cargo run -q --manifest-path fuzz/Cargo.toml --bin seeds
host=$(rustc -vV | sed -n 's/^host: //p')
tools=$(rustc +nightly --print sysroot)/lib/rustlib/$host/bin
objects=() profiles=()
for target in "${targets[@]}"; do
  cargo +nightly fuzz coverage "$target" >/dev/null
  profiles+=("fuzz/coverage/$target/coverage.profdata")
  objects+=(-object "$(find . -path "*/coverage/$host/release/$target" -type f | head -n 1)")
done
"$tools/llvm-profdata" merge -o fuzz/coverage/all.profdata "${profiles[@]}"
"$tools/llvm-cov" report "${objects[@]:1}" -instr-profile fuzz/coverage/all.profdata \
  src/bytes src/format src/codec src/index/tree.rs src/index/cursor.rs src/txn/open.rs src/catalog/lookup.rs
