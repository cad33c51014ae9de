#!/usr/bin/env python3
"""The page docs/guide/reference.md: sources, verbs and ops, from what the package says of itself.

    tools/reference.py             writes the page
    tools/reference.py --check     fails when the page is another

Signatures and words come from the package, those of image ops from their schemas in the engine's
catalogue. Run it with the interpreter of .venv, after `make python`.
"""

import argparse
import inspect
import json
import re
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs/guide/reference.md"
SOURCES = ("range", "from_tensors", "from_tensor_slices", "from_index", "from_generator",
           "from_sequence", "image_folder", "from_paths", "list_files", "zip")
# Ops that are not steps of an image chain, and the function that makes each.
OPS = {"cast": "cast", "cutmix": "image.cutmix", "mixup": "image.mixup",
       "one_hot": "image.one_hot", "read_file": "read_file"}
CHAIN = "image"  # the op that a chain of steps becomes


def signature(name: str, function: object) -> str:
    text = str(inspect.signature(function)).replace("(self, ", "(").replace("(self)", "()")
    text = re.sub(r"'|penstock\.\w+\.|collections\.abc\.|_native\.", "", text)
    return f"{name}{text}"


def words(thing: object) -> str:
    return inspect.getdoc(thing) or ""


def entry(name: str, function: object) -> list[str]:
    return [f"### `{name}`", "", f"`{signature(name, function)}`", "", words(function), ""]


def image_step(word: str, about: str, parameters: list[tuple[str, str | None, str]]) -> list[str]:
    lines = [f"### `.{word}`", "", about, ""]
    if parameters:
        lines += ["| parameter | default | |", "|---|---|---|"]
        for name, fallback, described in parameters:
            shown = "" if fallback is None else f"`{json.loads(fallback)!r}`"
            lines.append(f"| `{name}` | {shown} | {described} |")
        lines.append("")
    return lines


def page() -> str:
    import penstock as ps

    unknown = set(ps._native.catalogue_words()) - {*OPS, CHAIN}
    if unknown:
        sys.exit(f"tools/reference.py: say how these ops are made: {', '.join(sorted(unknown))}")
    lines = ["# Reference", "",
             "Written by `tools/reference.py` from the package and the engine's catalogue of ops.",
             "", "## Sources", ""]
    for name in SOURCES:
        lines += entry(f"ps.{name}", getattr(ps, name))
    lines += ["## Verbs of a Dataset", ""]
    for name, function in vars(ps.Dataset).items():
        if not name.startswith("_") and inspect.isfunction(function):
            lines += entry(f".{name}", function)
    lines += ["## Images", "",
              "A chain begins with `ps.image.decode()` (encoded files) or `ps.image.of()` "
              "(pixels), is a value, and goes into `.map`. Its steps run in one pass.", ""]
    lines += entry("ps.image.decode", ps.image.decode) + entry("ps.image.of", ps.image.of)
    for word, about, parameters in ps._native.image_steps():
        if word != "decode":
            lines += image_step(word, about, parameters)
    lines += ["## Other ops for `.map`", ""]
    for path in OPS.values():
        function = ps
        for name in path.split("."):
            function = getattr(function, name)
        lines += entry(f"ps.{path}", function)
    lines += ["## Running", ""]
    lines += entry("ps.Loader", ps.Loader.__init__)
    for name, function in vars(ps.Loader).items():
        if not name.startswith("_") and inspect.isfunction(function):
            lines += entry(f"loader.{name}", function)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


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
    print("docs/guide/reference.md is not what the package says: run tools/reference.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
