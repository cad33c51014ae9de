#!/usr/bin/env python3
"""Checks the house rules that no compiler sees: layer order, names, sizes, tests, banned words.

Prints `file:line: message` per finding, exits 1 if there is one. `--self-test` proves on made-up
trees that every rule fires. An #if with an open brace in each branch confuses function lengths.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from collections import namedtuple
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

COLUMNS_MAX, FILE_LINES_MAX, FUNCTION_LINES_MAX = 100, 600, 70
# The peers' programs stay as they were when they were measured.
AS_MEASURED = "bench/rivals/peers/"
BELOW_ALL_ROOMS = ("train", "cli", "bench", "tests", "examples", "python", "fuzz")
# The rooms that programs and libraries over the core include. Of these only base/ knows no concept
# of penstock, so a library that wants to leave this repository one day has no other.
ROOMS_OF = {
    "train/": ("base",),
    "cli/": ("base", "trace", "report", "codec"),
    "python/bindings/": ("base", "trace", "sample", "op", "graph", "verb", "feed"),
}
# Types of src/ that public headers only point to: the data behind a handle.
BEHIND_HANDLES = {"BatchData", "FolderListing", "Node", "Op", "PlanData", "Recorder", "Recording",
                  "RowFailures", "ScopeEntry", "StrategyCore", "Team"}
ALL_HEADERS = "include/penstock/penstock.h"
CPP, SCRIPTS = (".cc", ".h"), (".py", ".sh", ".cmake", "CMakeLists.txt", "Makefile")
Finding = namedtuple("Finding", "path line message")


class Ban(NamedTuple):
    """A pattern that files in `scope` contain only where their path matches `allowed`."""

    pattern: str
    message: str
    scope: str = r".*\.(cc|h)$"
    allowed: str = r"$^"
    comments_too: bool = False


BANS = (
    Ban(r"std::(?:cout|cerr|clog)\b|\b(?:v?f?printf|f?puts)\s*\(|\bfmt::print",
        "the library prints only through src/base/report.cc",
        scope=r"(src|include)/.*\.(cc|h)$", allowed=r"src/base/report\.cc$"),
    Ban(r"std::(?:j?thread|async)\b|\bpthread_create\b|<thread>",
        "threads are created only in src/base/thread.*", allowed=r"src/base/thread[._]|examples/"),
    Ban(r"std::(?:\w+_)?mutex\b", "use the annotated Mutex of base/mutex.h",
        allowed=r"src/base/mutex\.h$|examples/"),
    Ban(r"\bnlohmann\s*::|[<\"]nlohmann/", "only src/base/json.* and tests know nlohmann",
        allowed=r"src/base/json(_fwd)?\.|tests/|.*_test\.cc$"),
    Ban(r"\busing\s+namespace\b", "name what is used instead"),
    Ban(r"\bsleep_(?:for|until)\b|\b(?:u|nano)?sleep\s*\(", "tests never sleep",
        scope=r".*_test\.cc$"),
    Ban(r"\bTO" r"DO\b(?!\(#\d+\))", "needs an issue number, as in (#12)",
        scope="", comments_too=True),
)

# Kept: includes, and numbers, so that the quote in 1'000 opens no character literal.
LITERAL = re.compile(
    r'(?P<kept>^[ \t]*#[ \t]*include[ \t]*[<"][^>"\n]*[>"]|\b\d(?:\'?[\w.])*)'
    r"|//(?:[^\n\\]|\\.)*|/\*.*?\*/"
    r'|R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"'
    r"|'(?:\\.|[^'\\\n])+'", re.MULTILINE | re.DOTALL)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.)*", re.MULTILINE | re.DOTALL)
ROOMS = re.compile(r"^\s*set\(PENSTOCK_ROOMS\s+([^)]*)\)", re.MULTILINE)
PUBLIC_INCLUDE = re.compile(r"<((penstock|fmt)/[\w./]+|[a-z_0-9]+)")
TRAIN_INCLUDE = re.compile(r"<((penstock|fmt|torch)/[\w./]+|[a-z_0-9]+)")
FORWARD = re.compile(r"^\s*(?:class|struct)\s+(\w+)\s*$")
BANNED_NAME = re.compile(r"(?:^|[/_.-])((?:util|helper|common|misc|manager)s?)(?=$|[/_.-])", re.I)
TESTED_IN = re.compile(r"^\s*// tested in ([\w./-]*\w)", re.MULTILINE | re.IGNORECASE)
TEST_FILE = re.compile(r"_test\.cc$|(?:^|/)tests/|^fuzz/|_for_tests\.h$")
TYPE = re.compile(r"\b(?:class|struct|union|enum(?:\s+(?:class|struct))?)\s+"
                  r"(?:PENSTOCK_\w+(?:\(\))?\s+)*(\w+)\s*(?:final\b\s*)?(?::(?!:)[^;{}]*)?$")
TYPES_TWICE = {"Chain"}  # image::Chain in penstock/image.h, and what it is made of
NAMED_PATH = re.compile(
    r"(?:`|\]\((?:\.\./)?)((?:src|include|python|train|cli|tests|tools|docs)/[\w./-]*\w)/?[`)]")
LAMBDA = re.compile(r"(?:^|[=(,{&|?:]|return)\s*\[[^\[\]]*\]\s*(?:\(\))?[\w\s:<>&*-]*$")


def blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


class Source:
    """One file; `code` has the shape of `text`, with comments and literals blanked."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self.text = path, text
        self.code = LITERAL.sub(lambda match: match[0] if match["kept"] else blank(match), text)

    def at(self, offset: int, message: str) -> Finding:
        return Finding(self.path, self.text.count("\n", 0, offset) + 1, message)


class Tree:
    def __init__(self, root: Path, paths: Iterable[str]) -> None:
        self.paths = sorted(path for path in set(paths) if (root / path).is_file())
        self.sources = [Source(path, (root / path).read_text(encoding="utf-8", errors="replace"))
                        for path in self.paths if path.endswith(CPP + SCRIPTS)]
        pages = (path for path in self.paths if re.fullmatch(
            r"(CONTRIBUTING|ARCHITECTURE|docs/tour|(src|python|train)/.*README)\.md", path))
        self.pages = {path: (root / path).read_text(encoding="utf-8") for path in pages}
        self.cpp = [source for source in self.sources if source.path.endswith(CPP)]
        listed = [ROOMS.search(s.text) for s in self.sources if s.path == "CMakeLists.txt"]
        self.rooms = listed[0][1].split() if listed and listed[0] else []


def check_layers(tree: Tree) -> Iterator[Finding]:
    if not tree.rooms:
        yield Finding("CMakeLists.txt", 1, "no set(PENSTOCK_ROOMS ...), the rooms in order")
        return
    for source in (source for source in tree.cpp if source.path.startswith("src/")):
        room = source.path.split("/")[1]
        if room not in tree.rooms:
            yield Finding(source.path, 1, f"{room} is no room of PENSTOCK_ROOMS in CMakeLists.txt")
            continue
        below = (*tree.rooms[tree.rooms.index(room) + 1 :], *BELOW_ALL_ROOMS)
        for match in INCLUDE.finditer(source.code):
            folder = match[2].split("/")[0]
            if folder in below:
                yield source.at(match.start(1), f"{room} may not include {folder}, a folder below")
            elif match[1] == '"' and folder not in (*tree.rooms, "penstock"):
                yield source.at(match.start(1), f'{match[2]}: name the room, as in "base/mix.h"')


def check_rooms_of_users(tree: Tree) -> Iterator[Finding]:
    for folder, allowed in ROOMS_OF.items():
        for source in (source for source in tree.cpp if source.path.startswith(folder)):
            for match in INCLUDE.finditer(source.code):
                room = match[2].split("/")[0]
                if room in tree.rooms and room not in allowed:
                    yield source.at(match.start(1), f"{match[2]}: {folder} includes public headers,"
                                    f" its own and {', '.join(f'{name}/' for name in allowed)}; "
                                    "make public what it needs")


def check_public_headers(tree: Tree) -> Iterator[Finding]:
    for source in tree.cpp:
        train = source.path.startswith("train/include/")
        if not train and not source.path.startswith("include/"):
            continue
        for match in INCLUDE.finditer(source.code):
            if not (TRAIN_INCLUDE if train else PUBLIC_INCLUDE).fullmatch(match[1] + match[2]):
                yield source.at(match.start(1), f"{match[1]}{match[2]}: public headers include "
                                "only <penstock/...>, <fmt/...> and standard C++, the trainer's "
                                "also <torch/...>")


def check_all_headers(tree: Tree) -> Iterator[Finding]:
    """penstock.h includes every other public header, except those of detail/."""
    for whole in (source for source in tree.cpp if source.path == ALL_HEADERS):
        included = {f"include/{match[2]}" for match in INCLUDE.finditer(whole.code)}
        for path in set(tree.paths) - included - {ALL_HEADERS}:
            if re.fullmatch(r"include/penstock/\w+\.h", path):
                yield Finding(ALL_HEADERS, 1, f"does not include {path}")


def forward_declarations(source: Source) -> Iterator[tuple[str, int]]:
    """Names and places of the types that are declared in a namespace and not defined there."""
    code, last, outer = DIRECTIVE.sub(blank, source.code), 0, []
    for match in re.finditer(r"[;{}]", code):
        head = code[last : match.start()]
        if match[0] == "{":
            outer.append(bool(re.search(r"\bnamespace\b[\w\s:]*$", head)))
        elif match[0] == "}" and outer:
            outer.pop()
        elif all(outer) and (found := FORWARD.search(head)):
            yield found[1], last + found.start(1)
        last = match.end()


def check_public_types(tree: Tree) -> Iterator[Finding]:
    """A type that a public header names is one that users can see, or the data behind a handle."""
    public = [source for source in tree.cpp if source.path.startswith("include/")]
    defined = {name for source in public for name, _ in types_of(source)}
    for source in public:
        for name, at in forward_declarations(source):
            if name not in defined | BEHIND_HANDLES:
                yield source.at(at, f"{name} is declared here, and no public header defines it")


def check_names(tree: Tree) -> Iterator[Finding]:
    for path in tree.paths:
        if match := BANNED_NAME.search(path):
            yield Finding(path, 1, f"the name '{match[1]}' does not say what is inside")


def check_sizes(tree: Tree) -> Iterator[Finding]:
    for source in tree.sources:
        if source.path.startswith(AS_MEASURED):
            continue
        lines = source.text.splitlines() if source.path.endswith((*CPP, ".py")) else []
        for number, line in enumerate(lines, 1):
            if len(line) > COLUMNS_MAX:
                yield Finding(source.path, number, f"{len(line)} columns, at most {COLUMNS_MAX}")
        if len(lines) > FILE_LINES_MAX:
            yield Finding(source.path, len(lines), f"file of more than {FILE_LINES_MAX} lines")


def fold(group: str, left: str, text: str) -> str:
    folded = re.sub(group, left, text)
    return text if folded == text else fold(group, left, folded)


def opens_function(head: str) -> bool:
    """Whether a brace after `head`, the code since the last ; { or }, opens a function body."""
    head = fold(r"\([^()]+\)", "()", head)
    if LAMBDA.search(head):
        return True
    head = fold(r"<[^<>]*>", "", head)
    is_type = re.search(r"\b(?:namespace|class|struct|union|enum)\b", head)
    is_value = ("=" in head and "operator" not in head) or head.count("(") != head.count(")")
    return "()" in head and not is_type and not is_value


def check_functions(tree: Tree) -> Iterator[Finding]:
    """Measures the outermost function bodies; looks into namespaces, classes and tables."""
    for source in tree.cpp:
        code = DIRECTIVE.sub(blank, source.code)
        depth = function_depth = start = last = 0
        for match in re.finditer(r"[;{}]", code):
            head = code[last : match.start()].strip()
            if match[0] == "{":
                depth += 1
                # The body of `Type() : member_{0} {}` follows a closing brace.
                is_body = opens_function(head) or (not head and code[last - 1 : last] == "}")
                if not function_depth and is_body:
                    function_depth, start = depth, match.start()
            elif match[0] == "}":
                if depth == function_depth:
                    function_depth = 0
                    lines = code.count("\n", start, match.start()) + 1
                    if lines > FUNCTION_LINES_MAX:
                        yield source.at(start, f"function of {lines} lines")
                depth -= 1
            last = match.end()


def check_tests(tree: Tree) -> Iterator[Finding]:
    for source in tree.cpp:
        path, named = source.path, TESTED_IN.search(source.text)
        if not re.match(r"src/.*(?<!_test)\.cc$", path) or path[:-3] + "_test.cc" in tree.paths:
            continue
        if not named:
            yield Finding(path, 1, "no sibling _test.cc and no line '// tested in <path>'")
        elif named[1] == path or named[1] not in tree.paths:
            yield source.at(named.start(1), f"tested in {named[1]}, which is no test")


def check_test_headers(tree: Tree) -> Iterator[Finding]:
    """A header of src/ that only tests include says so in its name, and stays with tests."""
    users: dict[str, list[tuple[Source, int]]] = {}
    for source in tree.cpp:
        for match in INCLUDE.finditer(source.code):
            users.setdefault(f"src/{match[2]}", []).append((source, match.start(1)))
    for header in (source.path for source in tree.cpp if source.path in users):
        others = [(user, at) for user, at in users[header] if not TEST_FILE.search(user.path)]
        if header.endswith("_for_tests.h"):
            for user, at in others:
                yield user.at(at, f"{header} is for tests only")
        elif not others:
            yield Finding(header, 1, "only tests include it: its name must end in _for_tests.h")


def types_of(source: Source) -> Iterator[tuple[str, int]]:
    """Names and places of the types that are defined in a namespace, not inside another type."""
    code, last, outer = DIRECTIVE.sub(blank, source.code), 0, []
    for match in re.finditer(r"[;{}]", code):
        head = code[last : match.start()]
        if match[0] == "{":
            is_namespace = bool(re.search(r"\bnamespace\b[\w\s:]*$", head))
            found = TYPE.search(fold(r"<[^<>]*>", "", head)) if all(outer) else None
            if found and not re.search(rf"\b{found[1]}\s*<", head):  # not a specialization
                yield found[1], match.start()
            outer.append(is_namespace)
        elif match[0] == "}" and outer:
            outer.pop()
        last = match.end()


def check_types(tree: Tree) -> Iterator[Finding]:
    """One meaning per word: no type name twice in namespace penstock."""
    seen: dict[str, str] = {}
    for source in tree.cpp:
        if not source.path.startswith(("src/", "include/")) or TEST_FILE.search(source.path):
            continue
        for name, at in types_of(source):
            if name in seen and name not in TYPES_TWICE:
                yield source.at(at, f"type {name} is also declared in {seen[name]}")
            seen[name] = source.path


def check_guards(tree: Tree) -> Iterator[Finding]:
    for source in tree.cpp:
        if source.path.endswith(".h") and not re.search(r"^#pragma once$", source.code, re.M):
            yield Finding(source.path, 1, "no #pragma once")


def check_readmes(tree: Tree) -> Iterator[Finding]:
    found = (re.match(r"src/[^/]+/", path) for path in tree.paths)
    for folder in sorted({match[0] for match in found if match}):
        if f"{folder}README.md" not in tree.paths:
            yield Finding(f"{folder}README.md", 1, "missing: it says what the room is for")


def check_named_paths(tree: Tree) -> Iterator[Finding]:
    """Files and folders that the pages for contributors name are there."""
    for path, text in tree.pages.items():
        for match in NAMED_PATH.finditer(text):
            if not any(f"{known}/".startswith(f"{match[1]}/") for known in tree.paths):
                yield Finding(path, text.count("\n", 0, match.start()) + 1,
                              f"{match[1]} is named here and does not exist")


def check_bans(tree: Tree) -> Iterator[Finding]:
    for ban in BANS:
        for source in tree.sources:
            if re.match(ban.scope, source.path) and not re.match(ban.allowed, source.path):
                text = source.text if ban.comments_too else source.code
                for match in re.finditer(ban.pattern, text):
                    yield source.at(match.start(), f"{match[0]}: {ban.message}")


RULES = (check_layers, check_rooms_of_users, check_public_headers, check_all_headers,
         check_public_types, check_names, check_sizes, check_functions,
         check_tests, check_test_headers, check_types, check_guards, check_readmes,
         check_named_paths, check_bans)

ONCE, LONG = "#pragma once\n", "{\n" + "  step();\n" * 70 + "}\n"
HOUSE = {  # A tree without findings, full of exceptions and lookalikes.
    "CMakeLists.txt": "# In order.\nset(PENSTOCK_ROOMS base run)\n",
    "src/base/README.md": "", "src/run/README.md": "", "src/base/json_test.cc": "nlohmann::json j;",
    "include/penstock/a.h": ONCE + "#include <fmt/core.h>\n#include <penstock/b.h>\n#include <map>",
    "src/base/mutex.h": ONCE + "class CAPABILITY(1) Mutex { std::mutex mutex_;" + LONG[1:],
    "src/base/thread.cc": "// Tested in src/base/json_test.cc.\n#include <thread>\nstd::jthread t;",
    "src/base/report.cc": "// tested in src/base/json_test.cc\nvoid f() { std::cout << 1; }",
    "src/base/json.h": ONCE + "#include <nlohmann/json.hpp>\nnlohmann::json j; // TO" "DO(#12)",
    "src/run/a.h": ONCE + '#include <penstock/a.h>\n#include "base/json.h"  // std::thread\n'
    "int a = 1'000; char q = '\"'; auto s = \"std::cout\"; auto r = R\"({ \" printf()\";\n"
    "int snprintf(char*);  /* using namespace */\nnamespace a::b " + LONG.replace("()", "_")
    + "template <class T = int(int)> struct C : B<int(int)> " + LONG.replace("()", "_")
    + "namespace penstock { struct One { struct In {}; }; template <> struct Two<int> {}; }\n"
    + "namespace penstock { class One::In {}; struct Two { struct In {}; }; enum class E; }\n"
    + "const Row kRows[] = " + LONG + "Rows k(Base(), Row" + LONG + ");",
    "cli/a.cc": "int main() { std::cout << 1; sleep(1); }",
    "include/penstock/penstock.h": ONCE + "#include <penstock/a.h>",
    "include/penstock/detail/b.h": ONCE + "namespace penstock { class Seen; class Node;\n"
    "class Own { class Impl; friend class Loop; };\n"
    "namespace b { class Seen {}; } template <class T> class D; }",
    "train/include/penstock/train/a.h": ONCE + "#include <torch/torch.h>\n#include <penstock/a.h>",
    "train/src/a.cc": '#include "penstock/a.h"\n#include "a.h"\n#include "base/json.h"',
}
# One tree each, HOUSE and the named file: what its only finding starts with, text, further files.
CASES: list[tuple[str, str | None, dict[str, str]]] = [
    ("CMakeLists.txt:1: no set(", "", {}),
    ("src/base/a.h:2: base may not include run", ONCE + '#include "run/a.h"', {}),
    ("src/base/a.h:2: base may not include run", ONCE + "#include <run/a.h>", {}),
    ("src/run/a.h:2: run may not include tests", ONCE + '#include "tests/a.h"', {}),
    ("src/run/a.h:2: a.h: name the room", ONCE + '#include "a.h"', {}),
    ("src/new/a.h:1: new is no room", ONCE, {"src/new/README.md": ""}),
    ("src/base/README.md:1: missing", None, {}),
    ("include/penstock/a.h:2: \"base/a.h: public", ONCE + '#include "base/a.h"', {}),
    ("include/penstock/a.h:2: <zlib.h: public", ONCE + "#include <zlib.h>", {}),
    ("train/include/penstock/a.h:2: \"base/json.h: public", ONCE + '#include "base/json.h"', {}),
    ("train/src/z.cc:1: run/a.h: train/ includes public headers, its own and base/;",
     '#include "run/a.h"', {}),
    ("python/bindings/z.cc:1: run/a.h: python/bindings/ includes", '#include "run/a.h"', {}),
    ("include/penstock/penstock.h:1: does not include include/penstock/a.h", ONCE, {}),
    *((f"include/penstock/a.h:3: {name} is declared here, and no public", f"{ONCE}namespace a {{\n"
       f"{type} {name}; }}", {}) for type, name in (("class", "Json"), ("struct", "Unknown"))),
    ("src/base/z.h:1: only tests include it", ONCE, {"tests/z.cc": '#include "base/z.h"'}),
    ("cli/z.cc:1: src/base/z_for_tests.h is for tests only", '#include "base/z_for_tests.h"',
     {"src/base/z_for_tests.h": ONCE}),
    *(("src/run/z.h:2: type Row is also declared in include/penstock/detail/z.h",
       ONCE + f"namespace penstock {{ {type} {{}}; }}",
       {"include/penstock/detail/z.h": ONCE + "namespace penstock { struct Row { int Row; }; }"})
      for type in ("class Row", "enum class Row : int", "struct Row final : public Base<int>",
                   "namespace { template <typename T> struct Row")),
    ("src/base/a.h:1: no #pragma once", "// #pragma once", {}),
    ("src/base/pool_managers.h:1: the name 'managers'", ONCE, {}),
    ("docs/Util/a.md:1: the name 'Util'", "", {}),
    *((f"{page}:2: src/run/z.cc is named here and does not exist", f"`src/run/`\n{text}", {})
      for page, text in (("CONTRIBUTING.md", "`src/run/z.cc`"),
                         ("docs/tour.md", "[z](../src/run/z.cc)"))),
    ("tools/a.py:2: 101 columns", "\n" + "#" * 101, {}),
    ("tools/a.h:601: file of more", ONCE + "\n" * 600, {}),
    ("src/base/a.cc:1: no sibling", "", {}),
    ("src/base/a.cc:2: tested in a_test.cc, which", "\n// tested in a_test.cc", {}),
    ("src/base/a.cc:1: tested in src/base/a.cc, which", "// tested in src/base/a.cc", {}),
    ("cli/a.h:2: TO" f"DO: {BANS[6].message}", ONCE + "// TO" "DO(me)", {}),
    *(("cli/a.cc:2: function of", "#define A() {\nnamespace a { " + f + LONG + "}", {}) for f in (
        "int f(int a = 1) const ", "A::A() : a_{0}, b_(1) ", "class A { A() : a_{0} ",
        "const Op kOp = Op().run([](int a) -> int ", "bool operator==(A) ", "TEST(A, B) ",
        "template <class T> requires(true) std::map<T, T> f() noexcept ")),
    *((f"{path}:2: {word}: {ban.message}", ONCE + word, {}) for ban, path, words in (
        (BANS[0], "src/base/a.h", "std::cout std::cerr printf( fprintf( fmt::print"),
        (BANS[1], "tests/a.h", "std::thread std::jthread <thread>"),
        (BANS[2], "src/base/a.h", "std::mutex std::shared_mutex"),
        (BANS[3], "src/run/a.h", "nlohmann:: <nlohmann/"), (BANS[4], "cli/a.h", "using\tnamespace"),
        (BANS[5], "src/run/a_test.cc", "sleep_for usleep( sleep("),
        (BANS[6], "tools/a.py", "TO" "DO")) for word in words.split(" ")),
]


def self_test() -> int:
    failures, fired = 0, set()
    for expected, text, more in [("", "", {}), *CASES]:
        with tempfile.TemporaryDirectory() as folder:
            files = {**HOUSE, **more, **({expected.split(":")[0]: text} if expected else {})}
            for path, content in files.items():
                if content is not None:
                    (Path(folder) / path).parent.mkdir(parents=True, exist_ok=True)
                    (Path(folder) / path).write_text(content, encoding="utf-8")
            tree = Tree(Path(folder), files)
        found = [(rule, "{}:{}: {}".format(*finding)) for rule in RULES for finding in rule(tree)]
        fired |= {rule for rule, _ in found} | {ban for ban in BANS if ban.message in expected}
        if len(found) != bool(expected) or not all(line.startswith(expected) for _, line in found):
            failures += 1
            print(f"self-test: expected [{expected}], found {[line for _, line in found]}")
    unproven = [rule for rule in (*RULES, *BANS) if rule not in fired]
    print(f"tidy self-test: {len(CASES) + 1} trees, {failures} failures, never fired: {unproven}")
    return 1 if failures or unproven else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    listing = subprocess.run(["git", "ls-files", "-zco", "--exclude-standard"], check=True,
                             cwd=arguments.root, capture_output=True, text=True).stdout
    tree = Tree(arguments.root, listing.split("\0")[:-1])
    found = sorted(finding for rule in RULES for finding in rule(tree))
    print(*("{}:{}: {}".format(*finding) for finding in found),
          f"tidy: {len(tree.paths)} files checked, {len(found)} findings", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
