#!/usr/bin/env python3
"""The page docs/peers.md: what other loaders document, and what penstock does, from the tests.

    tools/peers.py             writes the page
    tools/peers.py --check     fails if the page differs

Run it with the interpreter of .venv: the tests are imported.
"""

import argparse
import importlib
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/peers.md"
TESTS = {"tf.data": "test_tfdata_documented", "torch DataLoader": "test_torch_documented"}
VERDICTS = ("same", "other name", "different on purpose", "missing")


def page() -> str:
    sys.path.insert(0, str(ROOT / "python/tests"))
    for module in TESTS.values():
        importlib.import_module(module)
    from documented import ENTRIES

    lines = ["# What other loaders document, and what penstock does", "",
             "Each line is a test in `python/tests`; `tools/peers.py` writes this page from them.",
             "Each verb, sampler and argument has its own line. \"Other name\": available under "
             "another name. The test of",
             "a missing feature shows that it raises an error that says what to write.", "",
             "| peer | " + " | ".join(VERDICTS) + " | all |", "|---" * (len(VERDICTS) + 2) + "|"]
    for peer in TESTS:
        count = Counter(entry.verdict for entry in ENTRIES if entry.peer == peer)
        lines.append(f"| {peer} | " + " | ".join(str(count[each]) for each in VERDICTS)
                     + f" | {sum(count.values())} |")
    for peer, module in TESTS.items():
        lines += ["", f"## {peer}", "", f"Tests: [{module}.py](../python/tests/{module}.py).", "",
                  "| documented | in penstock | why, or what to use instead |", "|---|---|---|"]
        lines += [f"| {entry.quote} | {entry.verdict} | {entry.why} |" for entry in ENTRIES
                  if entry.peer == peer]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    text = page()
    if not arguments.check:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    print("docs/peers.md is out of date: run tools/peers.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
