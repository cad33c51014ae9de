#!/usr/bin/env python3
"""The protection of linker and compiler against memory errors, read from a release build.

    python3 tests/hardening_test.py build/release/bin/penstock [more files]

Each file is a command or a Python module. Standard library and readelf only.
"""

import subprocess
import sys


def readelf(option: str, file: str) -> str:
    return subprocess.run(["readelf", "-W", option, file], capture_output=True, text=True,
                          check=True).stdout


def missing_in(file: str) -> list[str]:
    header, segments = readelf("-h", file), readelf("-l", file)
    dynamic, symbols = readelf("-d", file), readelf("--dyn-syms", file)
    stack = [line for line in segments.splitlines() if "GNU_STACK" in line]
    return [what for what, holds in (
        ("a position independent file (-fPIE -pie)", "DYN (" in header),
        ("relocations that are read-only (-z relro)", "GNU_RELRO" in segments),
        ("all of them at the start (-z now)", "BIND_NOW" in dynamic or "NOW" in dynamic),
        ("a stack that is not executed", len(stack) == 1 and "RWE" not in stack[0]),
        ("stack protectors (-fstack-protector-strong)", "__stack_chk_fail" in symbols),
        ("checked copies (_FORTIFY_SOURCE)", "_chk@" in symbols.replace("__stack_chk_fail@", "")),
    ) if not holds]


def main() -> int:
    files = sys.argv[1:]
    if not files:
        print(__doc__, file=sys.stderr)
        return 2
    wrong = 0
    for file in files:
        missing = missing_in(file)
        print(f"{file}: {'lacks ' + '; '.join(missing) if missing else 'hardened'}")
        wrong += bool(missing)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
