"""Golden files against their expectations, for `reader.py`. Schema: vectors/README.md.

Holds the comparison only; what is found in a file is for `listing` to say. Public domain (CC0 1.0).
"""

import json
from pathlib import Path


def differences(expected, found, at, exact=False):
    """What `expected` states and `found` does not agree with; members that it leaves out are not compared."""
    if isinstance(expected, dict) and isinstance(found, dict):
        exact = exact or at.endswith(".document")
        whole = exact or at.endswith((".objects", ".attributes"))
        for name in expected.keys() | (found.keys() if whole else set()):
            if name not in expected or name not in found:
                yield f"{at}.{name}: {'not expected' if name in found else 'missing'}"
            else:
                yield from differences(expected[name], found[name], f"{at}.{name}", exact)
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for i, (e, f) in enumerate(zip(expected, found)):
            yield from differences(e, f, f"{at}[{i}]")
    elif json.dumps(expected) != json.dumps(found):                             # 1 is not 1.0, 0.0 is not -0.0
        yield f"{at}: expected {json.dumps(expected)[:200]}, found {json.dumps(found)[:200]}"


def check_vector(path, listing):
    expected = json.loads(path.with_suffix(".json").read_text("utf-8"))
    found = listing(path)
    problems = list(differences({k: v for k, v in expected.items() if k != "about"}, found, ""))
    if "error" not in expected:
        problems += [found["text"]] if "error" in found else []
        problems += [f"states no {k}" for k in ("generation", "other_slot", "objects") if k not in expected]
        for name, o in expected.get("objects", {}).items():
            if o.get("kind") == "array" and not ("error" in o or "chunks" in o and o.keys() & {"values", "sha256"}):
                problems.append(f"{name}: states no chunks or values")
    return problems


def check_vectors(folder, listing):
    """Compares every `*.orth` in the folder with the `*.json` beside it; gives the exit status."""
    files = sorted(Path(folder).glob("*.orth"))
    failed = 0
    for path in files:
        problems = check_vector(path, listing) if path.with_suffix(".json").exists() else ["no .json beside it"]
        failed += bool(problems)
        print(f"{'FAILED' if problems else 'ok':8}{path.name}")
        for p in problems[:10]:
            print(f"        {p}")
    print(f"{len(files) - failed} ok, {failed} failed")
    return 1 if failed or not files else 0
