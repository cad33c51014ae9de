#!/usr/bin/env python3
"""Runs the code blocks of the documentation, so that no page shows code that does not work.

A ```cpp block is compiled against the library of a build folder and run; without `int main` it is
taken as the body of one; one that names `pt::` is built with the trainer. In a ```bash block, lines
with `make` are checked against the Makefile
(`make -n`) and lines that start with build/ are run. Other languages, and blocks below a line
`<!-- not run: reason -->`, are only listed. Prints one line per block; exits 1 if one fails.

A comment `prints: TEXT` in C++ or Python is checked: the texts of a program must stand in what it
prints (stdout and stderr), in their order, a line each. `...` in TEXT stands for anything.

The ```python blocks of a page are one program, which the tests of the Python package run; a block
below `<!-- needs: torch -->` (or keras, tensorflow) belongs to it where that is installed.
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/**/*.md")
COMPILES_AT_ONCE = 2
SECONDS_MAX = 300
FENCE = re.compile(r"^(\s*)(`{3,}|~{3,})\s*([\w+-]*)")
NOT_RUN = re.compile(r"^\s*<!--\s*not run:\s*(\S.*?)\s*-->\s*$")
NEEDS = re.compile(r"^\s*<!--\s*needs:\s*(torch|keras|tensorflow)\s*-->\s*$")
PRINTS = re.compile(r"(?:#|//)\s*prints:\s*(\S.*?)\s*$", re.MULTILINE)
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b.*$", re.MULTILINE)


class Block(NamedTuple):
    page: str
    line: int  # of the first line inside the fence
    language: str
    text: str
    not_run: str  # the stated reason, or empty
    closed: bool
    needs: str = ""  # a library


class Result(NamedTuple):
    ok: bool
    summary: str
    output: str = ""


class Toolchain(NamedTuple):
    """How the library of a build folder was compiled, as far as a program that links it cares."""

    compile: list[str]
    link: list[str]
    folder: Path
    train_compile: list[str] = []  # for programs that train; empty where the trainer is not built
    train_link: list[str] = []

    @classmethod
    def of_build(cls, build: Path) -> "Toolchain":
        cache = build / "CMakeCache.txt"
        text = cache.read_text(encoding="utf-8") if cache.is_file() else ""
        settings = dict(re.findall(r"^(\w+):\w+=(.*)$", text, re.MULTILINE))
        compiler = [settings.get("CMAKE_CXX_COMPILER", "c++"), "-std=c++20", "-pthread"]
        if sanitizers := settings.get("PENSTOCK_SANITIZE"):
            compiler.append(f"-fsanitize={sanitizers}")
        launcher = ["ccache"] if shutil.which("ccache") else []
        mold = ["-fuse-ld=mold"] if shutil.which("mold") else []
        optional = {"DEFLATE_FOUND": "-ldeflate", "WEBP_FOUND": "-lwebp",
                    "SNDFILE_FOUND": "-lsndfile", "SOXR_FOUND": "-lsoxr", "ZSTD_FOUND": "-lzstd",
                    "SIMDJSON_FOUND": "-lsimdjson",
                    "HWY_DIR": "-lhwy"}
        library = [str(build / "libpenstock.a"), "-lfmt", "-ljpeg", "-lpng", "-lz"]
        library += [name for key, name in optional.items()
                    if settings.get(key, "") not in ("", "0") and "NOTFOUND" not in settings[key]]
        compile_flags = [*launcher, *compiler, "-I", str(ROOT / "include"), "-c"]
        train_compile, train_link = [], []
        if (build / "train/libpenstock_train.a").is_file() and settings.get("Torch_DIR"):
            torch = Path(settings["Torch_DIR"]).parents[2]
            headers = [torch / "include", torch / "include/torch/csrc/api/include"]
            train_compile = [*compile_flags, "-DFMT_HEADER_ONLY=1", "-I",
                             str(ROOT / "train/include"),
                             *(f"-isystem{folder}" for folder in headers)]
            train_link = [*compiler, *mold, str(build / "train/libpenstock_train.a"), *library,
                          f"-L{torch / 'lib'}", f"-Wl,-rpath,{torch / 'lib'}", "-ltorch",
                          "-ltorch_cpu", "-lc10"]
        return cls(compile_flags, [*compiler, *mold, *library], build / "doc_blocks",
                   train_compile, train_link)


def blocks(page: str, text: str) -> Iterator[Block]:
    fence, language, start, reason, needs, previous = "", "", 0, "", "", ""
    body: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        match = FENCE.match(line)
        if not fence and match:
            fence, language, start, body = match[2], match[3], number + 1, []
            stated = NOT_RUN.match(previous)
            reason = stated[1] if stated else ""
            wanted = NEEDS.match(previous)
            needs = wanted[1] if wanted else ""
        elif fence and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
            yield Block(page, start, language, "\n".join(body), reason, True, needs)
            fence = previous = ""
        elif fence:
            body.append(line)
        elif line.strip():
            previous = line
    if fence:
        yield Block(page, start, language, "\n".join(body), reason, closed=False)


def python_pages() -> list[str]:
    """The pages that hold Python, by their paths in the repository."""
    pages = sorted({path for pattern in PAGES for path in ROOT.glob(pattern)})
    return [page for page in (path.relative_to(ROOT).as_posix() for path in pages)
            if any(block.language == "python" for block in page_blocks(page))]


def page_blocks(page: str) -> list[Block]:
    return list(blocks(page, (ROOT / page).read_text(encoding="utf-8")))


def python_program(page: str, having: tuple[str, ...] = ()) -> str:
    """The Python of a page that runs with the libraries in `having`, at the lines it has there."""
    lines: list[str] = []
    for block in page_blocks(page):
        if block.language == "python" and not block.not_run and (
                not block.needs or block.needs in having):
            lines += [""] * (block.line - 1 - len(lines)) + block.text.splitlines()
    return "\n".join(lines) + "\n"


def not_printed(program: str, output: str) -> str:
    """The first `prints:` text of a program that its output lacks, or nothing."""
    lines = iter(output.splitlines())
    for text in PRINTS.findall(program):
        wanted = re.compile(".*".join(map(re.escape, text.split("..."))))
        if not any(wanted.search(line) for line in lines):
            return text
    return ""


def trains(block: Block) -> bool:
    return "pt::" in block.text


def program(block: Block) -> str:
    """The block as a whole source file, in which compilers name the lines of the page."""
    here = f'#line {block.line} "{block.page}"\n'
    if re.search(r"\bint\s+main\s*\(", block.text):
        return f"{here}{block.text}\n"
    includes = "\n".join(INCLUDE.findall(block.text))
    header, names = "penstock/penstock.h", "namespace ps = penstock;\n"
    if trains(block):
        header, names = "penstock/train.h", names + "namespace pt = penstock::train;\n"
    return (f"#include <fmt/format.h>\n#include <{header}>\n{includes}\n{names}"
            f"int main() {{\n{here}{INCLUDE.sub('', block.text)}\n}}\n")


def execute(command: list[str], cwd: Path) -> Result:
    # A make that runs this script must not lend its flags and job server to the makes below.
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")} | {"LC_ALL": "C.UTF-8"}
    try:
        done = subprocess.run(command, cwd=cwd, env=environment, timeout=SECONDS_MAX, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, errors="replace", check=False)
    except subprocess.TimeoutExpired:
        return Result(False, f"still running after {SECONDS_MAX} s")
    except OSError as error:
        return Result(False, str(error))
    return Result(done.returncode == 0, f"exit status {done.returncode}", done.stdout)


def run_cpp(block: Block, toolchain: Toolchain) -> Result:
    # A stable place, since ccache compares paths.
    stem = toolchain.folder / f"{block.page.replace('/', '_')}_{block.line}"
    source, compiled, binary = (f"{stem}{suffix}" for suffix in (".cc", ".o", ".bin"))
    Path(source).write_text(program(block), encoding="utf-8")
    compiling, linking = toolchain.compile, toolchain.link
    if trains(block):
        compiling, linking = toolchain.train_compile, toolchain.train_link
        if not compiling:
            return Result(False, "needs the trainer: make train")
    steps = {"compile": [*compiling, source, "-o", compiled],
             "link": [linking[0], compiled, *linking[1:], "-o", binary],
             "run": [binary]}
    with tempfile.TemporaryDirectory() as scratch:
        for name, command in steps.items():
            result = execute(command, Path(scratch) if name == "run" else ROOT)
            if not result.ok:
                return Result(False, f"{name}: {result.summary}", result.output)
    if missing := not_printed(block.text, result.output):
        return Result(False, f"does not print: {missing}", result.output)
    return Result(True, "compiled and run")


def run_line(command: str, build: Path) -> Result | None:
    """Runs one command of a bash block; None where it is of a kind that is not run.

    Pages name the programs of `make demo`, in build/release; here those of `build` are run.
    """
    if re.match(r"make(\s|$)", command):
        make = ["make", "-n", *shlex.split(command, comments=True)[1:]]
        result = execute(make, ROOT)
        # Make takes a folder of the target's name for a target without a rule.
        missing = "Nothing to be done for" in result.output
        return Result(result.ok and not missing, "no such target", result.output)
    if command.startswith("build/"):
        here = command.replace("build/release/", f"{shlex.quote(str(build))}/")
        return execute(["bash", "-o", "pipefail", "-c", here], ROOT)
    return None


def run_bash(block: Block, build: Path) -> Result:
    done = skipped = 0
    for line in block.text.replace("\\\n", " ").splitlines():
        for command in map(str.strip, line.split("&&")):
            if not command or command.startswith("#"):
                continue
            result = run_line(command, build)
            if result is None:
                # What follows may need what was not run, a `cd` say.
                skipped += 1
                break
            if not result.ok:
                return Result(False, f"`{command}`: {result.summary}", result.output)
            done += 1
    return Result(True, f"{done} commands checked, {skipped} not run")


def run_block(block: Block, toolchain: Toolchain) -> Result:
    if not block.closed:
        return Result(False, "the fence is never closed")
    if block.not_run:
        return Result(True, f"not run: {block.not_run}")
    if block.language == "cpp":
        return run_cpp(block, toolchain)
    if block.language == "bash":
        return run_bash(block, toolchain.folder.parent)
    if block.language == "python":
        command = "make test-frameworks" if block.needs else "make test-python"
        return Result(True, f"run by {command}")
    return Result(True, "not run")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=Path("build/dev"),
                        help="build folder that holds libpenstock.a")
    parser.add_argument("pages", nargs="*", help=f"default: {' '.join(PAGES)}")
    arguments = parser.parse_args()
    toolchain = Toolchain.of_build(arguments.build.resolve())
    shutil.rmtree(toolchain.folder, ignore_errors=True)
    toolchain.folder.mkdir(parents=True)

    pages = sorted({path for pattern in arguments.pages or PAGES for path in ROOT.glob(pattern)})
    found = [block for path in pages for block in
             blocks(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))]
    failures = 0
    with ThreadPoolExecutor(COMPILES_AT_ONCE) as pool:
        compiling = {block: pool.submit(run_block, block, toolchain)
                     for block in found if block.language == "cpp"}
        for block in found:
            # The others one by one and in order, as a reader would type them.
            result = (compiling[block].result() if block in compiling
                      else run_block(block, toolchain))
            failures += not result.ok
            print(f"{block.page}:{block.line}: {block.language or 'no language'}: "
                  f"{'' if result.ok else 'FAILED: '}{result.summary}", flush=True)
            if not result.ok and result.output:
                print(result.output.rstrip(), flush=True)
    print(f"doc_blocks: {len(found)} blocks on {len(pages)} pages, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
