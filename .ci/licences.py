#!/usr/bin/env python3
"""Holds every crate of the lock file against the licence list, the bans and the sources of deny.toml.

A stand-in for `cargo deny check bans licenses sources` that needs no installation. It reads the licence each crate
declares and does not look into licence files. Run from the project's root. Needs Python 3.11.
"""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

REGISTRY = "registry+https://github.com/rust-lang/crates.io-index"


def allowed(expression, licences):
    """Whether an SPDX expression can be met with `licences`; the old `A/B` means `A OR B`."""
    tokens = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))

    def term():
        token = tokens.pop(0)
        if token == "(":
            value = either()
            tokens.pop(0)
            return value
        if tokens[:1] == ["WITH"]:
            tokens.pop(0)
            token = f"{token} WITH {tokens.pop(0)}"
        return token in licences

    def both():
        value = term()
        while tokens[:1] == ["AND"]:
            tokens.pop(0)
            value = term() and value
        return value

    def either():
        value = both()
        while tokens[:1] == ["OR"]:
            tokens.pop(0)
            value = both() or value
        return value

    return either() and not tokens


def below(version, floor):
    """Whether `version` is lower than `floor`, by its numbers."""
    return tuple(map(int, version.split("-")[0].split("+")[0].split("."))) < tuple(map(int, floor.split(".")))


def main():
    policy = tomllib.loads(Path("deny.toml").read_text())
    licences = set(policy["licenses"]["allow"])
    bans = [ban["crate"].partition(":<")[::2] for ban in policy["bans"]["deny"]]
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    packages = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["packages"]
    faults = []
    for package in packages:
        name = f"{package['name']} {package['version']}"
        if not allowed(package["license"] or "none", licences):
            faults.append(f"{name}: licence {package['license']!r} is not on the list")
        if package["source"] not in (None, REGISTRY):
            faults.append(f"{name}: comes from {package['source']}")
        for banned, floor in bans:
            if package["name"] == banned and (not floor or below(package["version"], floor)):
                faults.append(f"{name}: banned" + (f" below {floor}" if floor else ""))
    print("\n".join(faults + [f"note: {len(packages)} crates, {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
