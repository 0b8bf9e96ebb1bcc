#!/usr/bin/env python3
"""Containers that the library writes, read by the second reader (`format-spec/reader.py`).

The library's test writes them with what must be read from them, in the schema of the golden files: every type, every codec,
shards, negative coordinates, ragged edges, all states of a chunk, deep groups, attributes of every content, many commits.
Needs cargo and numcodecs.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEST = "second_reader::what_is_written_here_is_whole_and_states_what_it_holds"


def main():
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, ORTHANT_WRITE_TO=folder)
        subprocess.run(["cargo", "test", "--quiet", "--test", "spec", "--", "--exact", TEST],
                       cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
        written = sorted(pathlib.Path(folder).glob("*.orth"))
        if len(written) < 4:
            sys.exit(f"only {len(written)} containers were written")
        subprocess.run([sys.executable, str(ROOT / "format-spec/reader.py"), "--check-vectors", folder], check=True)
        print(f"note: {len(written)} containers read by the second reader")


if __name__ == "__main__":
    main()
