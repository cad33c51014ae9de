#!/usr/bin/env python3
"""Writes python/penstock/_native.pyi from the built module; `--check` fails when it would change.

Run it with the interpreter of .venv, after `make python`.
"""

import argparse
import re
import sys
from pathlib import Path

STUB = Path(__file__).resolve().parent.parent / "python/penstock/_native.pyi"
# What nanobind can only call an object.
MORE_EXACT = (
    (r"def (weight|valid|sample_id)\(self\) -> object", r"def \1(self) -> np.ndarray"),
    (r"def (__iter__)\(self\) -> object", r"def \1(self) -> typing.Iterator[typing.Any]"),
    (r"def rng\(\) -> object", "def rng() -> np.random.Generator"),
    (r"def (ledger_entries)\(self\) -> list", r"def \1(self) -> list[dict[str, typing.Any]]"),
    (r"def (keys)\(self\) -> list", r"def \1(self) -> list[str]"),
    (r"def (shares)\(self\) -> list", r"def \1(self) -> list[Batch]"),
    (r"def (counts)\(self\) -> list", r"def \1(self) -> list[int]"),
    (r"def (tail_cost|check|report)\(([^)]*)\) -> dict", r"def \1(\2) -> dict[str, typing.Any]"),
    (r": list\b(?!\[)", ": list[typing.Any]"), (r"-> list:", "-> list[typing.Any]:"),
    (r": dict\b(?!\[)", ": dict[str, typing.Any]"),
    (r"\bobject \| None", "typing.Any"), (r"\bobject\b", "typing.Any"),
    (r"^version: str = [^\n]*", "version: str"), (r"^from typing import Any\n", ""),
    (r"(?<![.\w])Any\b", "typing.Any"),
)


def stub() -> str:
    import penstock._native
    from nanobind.stubgen import StubGen

    generator = StubGen(module=penstock._native)
    generator.put(penstock._native)
    text = generator.get()
    for pattern, words in MORE_EXACT:
        text = re.sub(pattern, words, text, flags=re.MULTILINE)
    head = "# Written by tools/stubs.py (`make stubs`).\nimport typing\n\nimport numpy as np\n"
    return head + text.strip("\n") + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    text = stub()
    if arguments.check:
        if STUB.is_file() and STUB.read_text(encoding="utf-8") == text:
            return 0
        print(f"{STUB.name} is not what the module says: make stubs")
        return 1
    STUB.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
