#!/usr/bin/env bash
# The command under real faults: system calls that strace lets fail, real disks that are full or read-only, a limit on the file's size.
# After each, the container must be in order and hold the state before or after, and the one after where the command said so.
#
#   tests/faulty_system.sh [PATH-OF-ORTHANT]     builds the debug binary where no path is given
#
# Says what it skips: without strace, or without the right to mount a small tmpfs. Prints figures for RELIABILITY.md.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# -gt 0 ]; then orthant=$1; else
  cargo build -q -p orthant-cli
  orthant=${CARGO_TARGET_DIR:-$PWD/target}/debug/orthant
fi
work=$(mktemp -d); mounted=
cleanup() { if [ -n "$mounted" ]; then umount "$mounted" || true; fi; rm -rf "$work"; }
trap cleanup EXIT
fail() { echo "FAIL: $*" >&2; exit 1; }

# A container whose array holds ones everywhere.
fresh() {
  rm -f "$1"
  "$orthant" -q create "$1:/a" --domain -8:8 --chunks 4 --dtype i32
  "$orthant" -q put "$1:/a" --value 1
}
# The container is in order and holds one value everywhere; prints it.
value() {
  "$orthant" check "$1" --level data >/dev/null 2>&1 || fail "$2: check"
  local values; values=$("$orthant" -q get "$1:/a" --format csv -o - 2>/dev/null | tr ' ,' '\n\n' | grep -E '^-?[0-9]+$' | sort -u)
  [ "$(wc -l <<<"$values")" -eq 1 ] || fail "$2: mixed values: $values"
  echo "$values"
}
# Judges what a put of `new` over ones left, that ended with `code`.
judge() {
  local found; found=$(value "$1" "$4")
  [ "$found" = 1 ] || [ "$found" = "$2" ] || fail "$4: value $found"
  if [ "$3" -eq 0 ] && [ "$found" != "$2" ]; then fail "$4: acknowledged and not there"; fi
  case $3 in 0 | 3) ;; *) fail "$4: exit code $3";; esac
  "$orthant" -q put "$1:/a" --value 1 2>/dev/null || fail "$4: the next writer"
}

injected=0
if command -v strace >/dev/null; then
  fresh "$work/s.orth"
  for call in pwrite64 fdatasync fsync openat pread64 fcntl fstat mmap; do
    for error in EIO ENOSPC EINTR; do
      for when in 1 2 3 4 5 6 8 10 12+; do
        code=0
        strace -f -qq -o /dev/null -P "$work/s.orth" -e "trace=$call" -e "inject=$call:error=$error:when=$when" \
          "$orthant" -q put "$work/s.orth:/a" --value 2 2>/dev/null || code=$?
        # A reader of slots may find a lock it cannot ask for: that is an I/O error, or another writer's.
        [ "$code" -ne 5 ] || code=3
        judge "$work/s.orth" 2 "$code" "$call fails with $error at $when"
        injected=$((injected + 1))
      done
    done
  done
  echo "figure 3: failing system calls = $injected"
else
  echo "skipped: no strace, so no failing system calls"
fi

# A limit on the length of files: a short write, then EFBIG.
limited=0
fresh "$work/l.orth"
for blocks in $(seq 12 4 48); do
  code=0
  (trap '' XFSZ; ulimit -f "$blocks"; "$orthant" -q put "$work/l.orth:/a" --value 2 2>/dev/null) || code=$?
  judge "$work/l.orth" 2 "$code" "files of at most $blocks KiB"
  limited=$((limited + 1))
done
echo "figure 3: files at their limit = $limited"

# A disk that is full, filled a little less each time; then room is made and the same works. Noise does not compress.
mkdir "$work/disk"
for n in 1 2 3; do head -c 200000 /dev/urandom >"$work/noise$n"; done
noise() {
  "$orthant" check "$1" --level data >/dev/null 2>&1 || fail "$2: check"
  "$orthant" get "$1:/b" --format raw -o - >"$work/got" 2>/dev/null
  local n; for n in 1 2 3; do if cmp -s "$work/got" "$work/noise$n"; then echo "$n"; return; fi; done
  fail "$2: a mixture"
}
if mount -t tmpfs -o size=2m tmpfs "$work/disk" 2>/dev/null; then
  mounted=$work/disk; full=0; file=$work/disk/d.orth
  for cycle in $(seq 50); do
    rm -f "$work/disk/"*
    "$orthant" -q create "$file:/b" --domain 0:200000 --chunks 50000 --dtype u8
    "$orthant" -q put "$file:/b" "$work/noise1" --format raw
    free=$(df --output=avail -k "$work/disk" | tail -n 1)
    left=$((cycle * 5))
    head -c $(((free - left) * 1024)) /dev/zero >"$work/disk/filler" || true
    code=0
    "$orthant" -q put "$file:/b" "$work/noise2" --format raw 2>/dev/null || code=$?
    found=$(noise "$file" "a disk with $left KiB left")
    case $code in
      0) [ "$found" = 2 ] || fail "acknowledged and not there" ;;
      3) full=$((full + 1)) ;;
      *) fail "exit code $code on a full disk" ;;
    esac
    rm "$work/disk/filler"
    "$orthant" -q put "$file:/b" "$work/noise3" --format raw 2>/dev/null || fail "room was made"
    [ "$(noise "$file" "after room was made")" = 3 ] || fail "the value after"
  done
  [ "$full" -ge 25 ] || fail "the disk was full $full times only"
  echo "figure 3: cycles of a full disk = 50"

  # The same disk, read-only: everything reads, and a writer is told why not.
  whole=$("$orthant" digest "$file")
  mount -o remount,ro "$mounted"
  if touch "$work/disk/x" 2>/dev/null; then fail "the disk is not read-only"; fi
  [ "$(noise "$file" "a read-only disk")" = 3 ] || fail "the value on a read-only disk"
  [ "$("$orthant" digest "$file")" = "$whole" ] || fail "the digest on a read-only disk"
  code=0
  "$orthant" -q put "$file:/b" "$work/noise1" --format raw 2>/dev/null || code=$?
  [ "$code" -eq 3 ] || fail "exit code $code of a writer on a read-only disk"
  echo "a read-only disk: read, checked, and refused to a writer"
else
  echo "skipped: no right to mount a small tmpfs, so no full and no read-only disk"
fi
