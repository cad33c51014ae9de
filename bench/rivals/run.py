#!/usr/bin/env python3
"""Images beside the peers: W1 (small PNGs) and W2 (photos), interleaved rounds, one process a run.

    bench/rivals/run.py --bench build/bench/bench [--rounds 7] [--pngs 20000] [--photos 1000]
                        [--peers mlx-data,DALI,tf.data,torch] [--out bench/results/rivals.json]

Makes the data and the peers' environments under .cache/rivals the first time. Our pixels are
checked image by image against Pillow first, the peers' with random ops off within the tolerances
of check_pixels.py. A peer that cannot be installed or run is reported with its error.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CACHE = ROOT / ".cache/rivals"

# Name -> script, variants by workload, packages, resize filter of each workload.
PEERS = {
    "mlx-data": ("mlx_data.py", {"W1": "", "W2": ""}, ["mlx-data==0.1.0"], "stb, antialiased"),
    "DALI": (
        "dali.py",
        {"W1": "", "W2": ""},
        ["nvidia-dali-cuda130==2.4.0"],
        "W1 bilinear, W2 antialiased",
    ),
    "tf.data": (
        "tfdata.py",
        {"W1": "", "W2": "antialias"},
        ["tensorflow-cpu==2.20.0"],
        "W1 bilinear, W2 antialiased",
    ),
    "torch": (
        "torch_dl.py",
        {"W1": "tv", "W2": "tv"},
        ["torch==2.12.0", "torchvision==0.27.0"],
        "W1 bilinear, W2 antialiased",
    ),
}
REFERENCE = {"W1": "png", "W2": "jpeg"}


def command(*words: object, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False, **options
    )


def environment(name: str, packages: list[str]) -> tuple[pathlib.Path, str]:
    """The interpreter of a peer's environment, and why it is not there, if so."""
    python = CACHE / "venvs" / name / "bin/python"
    if not python.exists():
        command(sys.executable, "-m", "venv", python.parent.parent)
        for package in [
            "numpy",
            "pillow",
            *packages,
        ]:  # one by one: torch before what depends on it
            done = command(python, "-m", "pip", "install", "-q", package, timeout=1200)
            if done.returncode:
                why = (done.stderr.strip().splitlines() or ["?"])[-1]
                return python, f"pip install {package}: {why[:200]}"
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
    return json.loads(lines[-1])


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
    peers = {name: environment(name, PEERS[name][2]) for name in options.peers.split(",") if name}
    peer_pixels = {
        name: {"error": why} if why else check_peer(name, python, data)
        for name, (python, why) in peers.items()
    }
    print("peers' pixels:", json.dumps(peer_pixels), flush=True)
    rounds: list[dict[str, object]] = []
    for number in range(options.rounds):
        for workload in ("W1", "W2"):
            runs = {}
            for threads in (1, 2):
                runs[f"reference, {threads} threads"] = last_json(
                    command(options.bench / "reference", REFERENCE[workload], data, threads)
                )
            runs["penstock"] = last_json(command(options.bench / "penstock_images", workload, data))
            for name, (python, why) in peers.items():
                script, variants = PEERS[name][:2]
                runs[name] = (
                    {"error": why}
                    if why
                    else last_json(
                        command(
                            python,
                            HERE / "peers" / script,
                            workload,
                            variants[workload],
                            cwd=HERE / "peers",
                            timeout=900,
                            env={
                                "BENCH_DIR": str(data),
                                "PATH": "/usr/bin:/bin",
                                "PYTHONWARNINGS": "ignore",
                            },
                        )
                    )
                )
            rounds.append({"round": number, "workload": workload, "runs": runs})
            print(
                number,
                workload,
                {name: run.get("items_per_s", run.get("error")) for name, run in runs.items()},
                flush=True,
            )
    summary = {workload: summarise(rounds, workload) for workload in ("W1", "W2")}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(
        json.dumps(
            {
                "pixels": pixels,
                "peer_pixels": peer_pixels,
                "filters": {n: PEERS[n][3] for n in peers},
                "summary": summary,
                "rounds": rounds,
            },
            indent=1,
        )
        + "\n"
    )
    for workload, rows in summary.items():
        print(f"\n{workload}: median of {options.rounds} rounds (ours: antialiased bilinear)")
        for name, row in rows.items():
            print(
                f"  {name:<22}",
                row
                if isinstance(row, str)
                else f"{row['items_per_s']:>9,.0f}/s  {row['to_reference']:.2f} of one reference "
                f"thread, {row['to_two']:.2f} of two; CPU {row.get('cpu_ms_per_item', 0):.3f} ms; "
                f"penstock is {row['penstock']:.2f} of it",
            )


def summarise(rounds: list[dict], workload: str) -> dict[str, object]:
    """Medians, and ratios taken round by round."""
    mine = [entry["runs"] for entry in rounds if entry["workload"] == workload]
    rows: dict[str, object] = {}
    for name in mine[0]:
        good = [runs for runs in mine if "items_per_s" in runs[name]]
        if not good:
            rows[name] = mine[-1][name]["error"]
            continue

        def ratio(other: str, runs: dict, name: str = name) -> float:
            return runs[name]["items_per_s"] / runs[other]["items_per_s"]

        rows[name] = {
            "items_per_s": statistics.median(runs[name]["items_per_s"] for runs in good),
            "to_reference": statistics.median(ratio("reference, 1 threads", runs) for runs in good),
            "to_two": statistics.median(ratio("reference, 2 threads", runs) for runs in good),
            "penstock": statistics.median(1 / ratio("penstock", runs) for runs in good),
        }
        for field in ("cpu_ms_per_item", "rss_mb", "first_batch_s"):
            values = [runs[name][field] for runs in good if field in runs[name]]
            if values:
                rows[name][field] = statistics.median(values)
    return rows


if __name__ == "__main__":
    main()
