"""Writes the figure sheet of RELIABILITY.md from a run of the tests.

    python3 tests/reliability.py            the figures of every run (some minutes)
    python3 tests/reliability.py --long     the long forms (hours on two cores)
    python3 tests/reliability.py LOG...     from logs of such runs, `cargo test -- --nocapture`, instead of a run

A test prints `figure ROW: WHAT = COUNT` for what it has done without finding anything wrong; it fails where it has. The
script fills the column of its form and leaves the other as it is. Standard library only.
"""

import datetime
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHEET = ROOT / "RELIABILITY.md"
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"
FIGURE = re.compile(r"figure (\d+): (.+) = (\d+)$")
MODULES = ["crash::", "injected::", "nested::", "mutated::", "hostile_", "fuzzed::", "cases::every_case", "doubt::",
           "files::a_killed", "salvage::", "limits::"]


def run(long):
    env = dict(os.environ)
    if long:
        env["ORTHANT_LONG"] = "1"
        env.setdefault("ORTHANT_FUZZ_SECONDS", "120")
        env.setdefault("ORTHANT_KILLS", "20000")
    commands = [["cargo", "test", "-p", "orthant", "--test", "spec", "--", "--nocapture", *MODULES]]
    if os.name == "posix":
        commands.append([str(ROOT / "tests" / "faulty_system.sh")])
    lines = []
    for command in commands:
        done = subprocess.run(command, cwd=ROOT, env=env, text=True, stdout=subprocess.PIPE, check=False)
        lines += done.stdout.splitlines()
        if done.returncode:
            sys.stdout.write(done.stdout)
            sys.exit(f"{' '.join(command)} ended with {done.returncode}: the sheet stays as it was")
    return lines


def figures(lines):
    found = {}
    for line in lines:
        match = FIGURE.search(line)
        if match:
            row, what, count = int(match[1]), match[2], int(match[3])
            found[row, what] = found.get((row, what), 0) + count
    return found


def main():
    long = "--long" in sys.argv
    logs = [a for a in sys.argv[1:] if not a.startswith("--")]
    lines = [line for log in logs for line in pathlib.Path(log).read_text().splitlines()] if logs else run(long)
    new = figures(lines)
    if not new:
        sys.exit("no figures were printed")
    text = SHEET.read_text()
    head, rest = text.split(BEGIN)
    table, tail = rest.split(END)
    columns = {}
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and cells[0].isdigit():
            columns[int(cells[0]), cells[1]] = [cells[2], cells[3]]
    stamp = datetime.date.today().isoformat()
    for key, count in new.items():
        columns.setdefault(key, ["", ""])[1 if long else 0] = f"{count:,} ({stamp})"
    out = ["", "| row | what | every run | long form |", "|---|---|---|---|"]
    out += [f"| {row} | {what} | {cells[0]} | {cells[1]} |" for (row, what), cells in sorted(columns.items())]
    SHEET.write_text(head + BEGIN + "\n".join(out) + "\n" + END + tail)


if __name__ == "__main__":
    main()
