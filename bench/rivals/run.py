#!/usr/bin/env python3
"""Images beside the peers: W1 (small PNGs) and W2 (photos), interleaved rounds, one process a run.

    bench/rivals/run.py --bench build/bench/bench [--rounds 7] [--pngs 20000] [--photos 1000]
                        [--peers mlx-data,DALI,...] [--out bench/results/rivals.json]

Makes the data and the peers' environments under .cache/rivals the first time. Our pixels are
checked image by image against Pillow first, the peers' with random ops off within the tolerances
of check_pixels.py. A peer that cannot be installed or run is reported with its error. W1 is
measured on crops of photos and on noise apart. A warm-up round is dropped, and every second round
runs in reverse. The first batch counts from the start of the process, for all.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tarfile
from typing import NamedTuple

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))
from rounds import facts, interleaved  # noqa: E402

CACHE = ROOT / ".cache/rivals"



class Peer(NamedTuple):
    script: str
    variants: dict[str, str]  # by workload; a peer without a variant does not run there
    packages: list[str]
    filter: str  # how it resizes
    environment: str = ""  # of another peer
    plain: bool = True  # whether peers_plain.py has its pixels


TENSORFLOW = ["tensorflow-cpu==2.20.0"]
PEERS = {
    "mlx-data": Peer("mlx_data.py", {"W1": "", "W2": ""}, ["mlx-data==0.1.0"], "antialiased"),
    "DALI": Peer("dali.py", {"W1": "", "W2": ""}, ["nvidia-dali-cuda130==2.4.0"],
                 "W1 bilinear, W2 antialiased"),
    "tf.data": Peer("tfdata.py", {"W1": "", "W2": "antialias"}, TENSORFLOW,
                    "W1 bilinear, W2 antialiased"),
    "Keras folder loader": Peer("tfdata.py", {"W1": "keras"}, TENSORFLOW,
                                "bilinear; one brightness for a batch", "tf.data", plain=False),
    "torch": Peer("torch_dl.py", {"W1": "tv", "W2": "tv"},
                  ["torch==2.12.0", "torchvision==0.27.0"], "W1 bilinear, W2 antialiased"),
    "TurboLoader": Peer("turbo.py", {"W1": "", "W2": ""}, ["turboloader==2.39.0"],
                        "antialiased; W1 by PIL", plain=False),
    "FFCV (converted files)": Peer("ffcv_dl.py", {"W1": "", "W2": ""},
                                   ["torch==2.13.0", "ffcv==1.0.2"],
                                   "area; W1 decoded before, W2 encoded again", "ffcv",
                                   plain=False),
}
REFERENCE = {"W1": "png", "W2": "jpeg"}
# Name -> workload and, for W1, the folder of its half.
WORKLOADS = {"W1 photos": ("W1", "png_photos"), "W1 noise": ("W1", "png_noise"), "W2": ("W2", "")}


def command(*words: object, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False, **options
    )


def environment(name: str, packages: list[str]) -> tuple[pathlib.Path, str]:
    """The interpreter of a peer's environment, and why it is not there, if so."""
    python = CACHE / "venvs" / name / "bin/python"
    ready = CACHE / "venvs" / name / "ready"
    if not ready.exists():
        command(sys.executable, "-m", "venv", python.parent.parent)
        for package in ["numpy", "pillow", *packages]:  # torch before what depends on it
            done = command(python, "-m", "pip", "install", "-q", package, timeout=1200)
            if done.returncode:
                why = (done.stderr.strip().splitlines() or ["?"])[-1]
                return python, f"pip install {package}: {why[:200]}"
        ready.touch()
    return python, ""


def make_data(pngs: int, photos: int) -> pathlib.Path:
    data = CACHE / f"data-{pngs}-{photos}"
    if not (data / "done").exists():
        python, why = environment("data", [])
        if why:
            raise SystemExit(why)
        for script, out, count in (
            ("make_pngs.py", "png", pngs),
            ("make_photos.py", "photos/0", photos),
        ):
            done = command(python, HERE / script, "--out", data / out, "--count", count)
            if done.returncode:
                raise SystemExit(done.stderr)
        with tarfile.open(data / "photos.tar", "w") as tar:  # four times, as the others read them
            for number in range(4):
                for photo in sorted((data / "photos/0").iterdir()):
                    tar.add(photo, f"{number}_{photo.name}")
        (data / "done").touch()
    return data


def check_pixels(images: pathlib.Path, data: pathlib.Path) -> dict[str, float]:
    """Our images without random ops against Pillow's, each by itself: differences in levels."""
    python, _ = environment("data", [])
    worst = {}
    for workload in ("W1", "W2"):
        plain = CACHE / f"{workload}.f32"
        done = command(images, workload, data, "--plain", plain)
        if done.returncode:
            raise SystemExit(done.stderr)
        done = command(python, HERE / "check_pixels.py", workload, data, plain)
        if done.returncode:
            raise SystemExit(done.stdout + done.stderr)
        worst[workload] = json.loads(done.stdout)
    return worst


def check_peer(name: str, python: pathlib.Path, data: pathlib.Path) -> dict[str, object]:
    """A peer's images without random ops; an error where it has none or they are too far off."""
    found: dict[str, object] = {}
    for workload in ("W1", "W2"):
        plain = CACHE / f"{name}.{workload}.f32"
        done = command(python, HERE / "peers_plain.py", name, workload, data, plain, timeout=300)
        if done.returncode == 0:
            checker = environment("data", [])[0]
            done = command(checker, HERE / "check_pixels.py", workload, data, plain, name)
        found[workload] = last_json(done)
    return found


def last_json(done: subprocess.CompletedProcess[str]) -> dict[str, object]:
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        return {"error": (done.stderr.strip().splitlines() or ["no output"])[-1][:300]}
    figures = json.loads(lines[-1])
    if "cpu_ms_per_item" in figures:
        figures["cores"] = round(figures["cpu_ms_per_item"] * figures["items_per_s"] / 1e3, 2)
    return figures


def jobs_of(options: argparse.Namespace, data: pathlib.Path,
            peers: dict[str, tuple[pathlib.Path, str]]) -> dict[str, object]:
    """Every measurement of a round, as `workload: who`."""
    jobs: dict[str, object] = {}

    def script(python: pathlib.Path, file: str, name: str, variant: str) -> object:
        workload, half = WORKLOADS[name]
        settings = {"BENCH_DIR": str(data), "PATH": "/usr/bin:/bin", "PYTHONWARNINGS": "ignore",
                    "PNG": half or "png_photos",
                    "PYTHONPATH": str(options.bench.resolve().parent / "python")
                    if file == "penstock_py.py" else ""}
        return lambda: last_json(command(python, HERE / "peers" / file, workload, variant,
                                         cwd=HERE / "peers", timeout=900, env=settings))

    for name, (workload, half) in WORKLOADS.items():
        ours = {**os.environ, "PNG": half or "png_photos"}
        for threads in (1, 2):
            jobs[f"{name}: reference, {threads} threads"] = (
                lambda workload=workload, threads=threads, ours=ours: last_json(command(
                    options.bench / "reference", REFERENCE[workload], data, threads, env=ours)))
        jobs[f"{name}: penstock, C++"] = lambda workload=workload, ours=ours: last_json(
            command(options.bench / "penstock_images", workload, data, env=ours))
        jobs[f"{name}: penstock"] = script(pathlib.Path(sys.executable), "penstock_py.py", name, "")
        for peer, (python, why) in peers.items():
            variant = PEERS[peer].variants.get(workload)
            if variant is not None:
                jobs[f"{name}: {peer}"] = (
                    (lambda why=why: {"error": why}) if why
                    else script(python, PEERS[peer].script, name, variant))
    return jobs


def summarize(figures: dict[str, list[dict]], name: str) -> dict[str, object]:
    """Medians, and ratios taken round by round."""
    mine = {key.split(": ", 1)[1]: runs for key, runs in figures.items()
            if key.startswith(f"{name}: ")}
    rows: dict[str, object] = {}
    for who, runs in mine.items():
        if errors := [run["error"] for run in runs if "error" in run]:
            rows[who] = errors[-1]
            continue
        rates = [run["items_per_s"] for run in runs]

        def of(other: str, rates: list[float] = rates) -> float:
            return statistics.median(rate / run["items_per_s"]
                                     for rate, run in zip(rates, mine[other], strict=True))

        rows[who] = {"items_per_s": statistics.median(rates),
                     "to_reference": round(of("reference, 1 threads"), 3),
                     "to_two": round(of("reference, 2 threads"), 3),
                     "penstock": round(1 / of("penstock"), 3)}
        for field in ("cores", "cpu_ms_per_item", "rss_mb", "first_batch_s"):
            if all(field in run for run in runs):
                rows[who][field] = statistics.median(run[field] for run in runs)
    return rows


def main() -> None:
    args = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    args.add_argument("--bench", type=pathlib.Path, default=ROOT / "build/bench/bench")
    args.add_argument("--rounds", type=int, default=7)
    args.add_argument("--pngs", type=int, default=20000)
    args.add_argument("--photos", type=int, default=1000)
    args.add_argument("--peers", default=",".join(PEERS))
    args.add_argument("--out", type=pathlib.Path, default=ROOT / "bench/results/rivals.json")
    options = args.parse_args()
    data = make_data(options.pngs, options.photos)
    pixels = check_pixels(options.bench / "penstock_images", data)
    print("pixels against Pillow:", json.dumps(pixels), flush=True)
    names = [name for name in options.peers.split(",") if name]
    peers = {name: environment(PEERS[name].environment or name, PEERS[name].packages)
             for name in names}
    peer_pixels = {
        name: {"error": why} if why else check_peer(name, python, data)
        for name, (python, why) in peers.items() if PEERS[name].plain
    }
    print("peers' pixels:", json.dumps(peer_pixels), flush=True)
    figures = interleaved(jobs_of(options, data, peers), options.rounds)
    summary = {name: summarize(figures, name) for name in WORKLOADS}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(
        {"facts": facts(), "rounds": options.rounds, "pixels": pixels, "peer_pixels": peer_pixels,
         "filters": {name: PEERS[name].filter for name in names}, "summary": summary,
         "runs": figures}, indent=1) + "\n")
    for name, rows in summary.items():
        print(f"\n{name}: median of {options.rounds} rounds (ours: antialiased bilinear)")
        for who, row in rows.items():
            print(f"  {who:<24}", row if isinstance(row, str) else
                  f"{row['items_per_s']:>9,.0f}/s  {row['to_reference']:.2f} of one reference "
                  f"thread, {row['to_two']:.2f} of two; {row.get('cores', 0):.2f} cores, CPU "
                  f"{row.get('cpu_ms_per_item', 0):.3f} ms; penstock is {row['penstock']:.2f} of "
                  "it")


if __name__ == "__main__":
    main()
