#!/usr/bin/env python3
"""Damages containers byte by byte for the second reader (`format-spec/reader.py`).

    flip_bytes.py FILE...           every byte of each FILE inverted in turn, on a copy

Whatever is then read must be right, be an error, or be the older slot's commit: never another
value, and never an exception that is not the reader's own. Takes minutes for 20 KB, so no stage
runs it. Needs numcodecs.
"""

import collections
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "format-spec"))
from documents import FormatError  # noqa: E402
from reader import listing  # noqa: E402


def agrees(found, right):
    """Whether `found` is `right`, apart from what says of itself that it is an error."""
    if isinstance(found, dict) and isinstance(right, dict):
        if "error" in found:
            return True
        return found.keys() == right.keys() and all(agrees(found[k], right[k]) for k in found)
    if isinstance(found, list) and isinstance(right, list):
        return len(found) == len(right) and all(map(agrees, found, right))
    return repr(found) == repr(right)


def read(path):
    found = listing(path)
    found.pop("other_slot")
    return found


def outcome(path, newest, older):
    try:
        found = read(path)
    except FormatError as e:
        return f"refused: {e.kind}"
    if found == newest:
        return "right values"
    if agrees(found, newest):
        return "an error beside right values"
    return "the older commit" if found == older else "WRONG"


def main(files):
    wrong = 0
    for file in files:
        right = pathlib.Path(file).read_bytes()
        with tempfile.NamedTemporaryFile(suffix=".orth") as copy:
            def read_with(at, damaged):
                copy.seek(at)
                copy.write(damaged)
                copy.flush()

            read_with(0, right)
            newest = read(copy.name)
            slot_at = 4096 * (1 + newest["generation"] % 2)
            read_with(slot_at, bytes(256))
            older = read(copy.name)
            read_with(0, right)
            outcomes = collections.Counter()
            for at, byte in enumerate(right):
                read_with(at, bytes([byte ^ 255]))
                found = outcome(copy.name, newest, older)
                outcomes[found] += 1
                if found == "WRONG":
                    wrong += 1
                    print(f"  byte {at}")
                read_with(at, bytes([byte]))
        counts = ", ".join(f"{n} {found}" for found, n in sorted(outcomes.items()))
        print(f"{file}: {len(right)} bytes; {counts}", flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
