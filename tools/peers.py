#!/usr/bin/env python3
"""The page docs/peers.md: what peers document, and what we do, from the tests that say so.

    tools/peers.py             writes the page
    tools/peers.py --check     fails when the page is another

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
VERDICTS = ("same", "another word", "different on purpose", "missing")


def page() -> str:
    sys.path.insert(0, str(ROOT / "python/tests"))
    for module in TESTS.values():
        importlib.import_module(module)
    from documented import ENTRIES

    lines = ["# What peers document, and what happens here", "",
             "Each line is a test in `python/tests`; `tools/peers.py` writes this page from them.",
             "Each verb, sampler and argument has a line of its own. \"Another word\" is there "
             "under another name;",
             "a test of something that is missing shows that it fails with a sentence that says "
             "what to write.", "",
             "| peer | " + " | ".join(VERDICTS) + " | all |", "|---" * (len(VERDICTS) + 2) + "|"]
    for peer in TESTS:
        count = Counter(entry.verdict for entry in ENTRIES if entry.peer == peer)
        lines.append(f"| {peer} | " + " | ".join(str(count[each]) for each in VERDICTS)
                     + f" | {sum(count.values())} |")
    for peer, module in TESTS.items():
        lines += ["", f"## {peer}", "", f"Tests: [{module}.py](../python/tests/{module}.py).", "",
                  "| documented | here | why, or what instead |", "|---|---|---|"]
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
    print("docs/peers.md is not what the tests say: run tools/peers.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
