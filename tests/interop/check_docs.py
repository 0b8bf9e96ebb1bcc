#!/usr/bin/env python3
"""Runs the `sh` and `python` blocks of pages in docs/ from top to bottom, each page in a folder of its own.

    .venv/bin/python tests/interop/check_docs.py

Blocks marked otherwise (`py`, `json`) are shown, not run. Nothing is fetched: a URL is only written down.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["xarray.md", "from-hdf5.md", "from-zarr.md"]


def main():
    subprocess.run(["cargo", "build", "--quiet", "-p", "orthant-cli"], cwd=ROOT, check=True)
    path = f"{ROOT / 'target/debug'}:{os.environ['PATH']}"
    count = 0
    for page in PAGES:
        text = (ROOT / "docs" / page).read_text()
        with tempfile.TemporaryDirectory() as folder:
            for kind, block in re.findall(r"^```(sh|python)\n(.*?)^```$", text, re.M | re.S):
                script = Path(folder, f"block{count}.py")
                script.write_text(block)
                command = ["bash", "-e", "-c", block] if kind == "sh" else [sys.executable, "-W", "ignore", str(script)]
                done = subprocess.run(command, cwd=folder, env=os.environ | {"PATH": path}, capture_output=True, text=True)
                assert done.returncode == 0, f"docs/{page}:\n{block}\n{done.stdout}{done.stderr}"
                count += 1
    assert count
    print(f"note: {count} blocks of {', '.join(PAGES)} run")


if __name__ == "__main__":
    main()
