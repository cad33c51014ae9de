#!/usr/bin/env python3
"""Files of records beside the peers, interleaved rounds, one process a run.

    python bench/records/run.py [--rounds 5] [--tensorflow PYTHON] [--hf PYTHON] [--only NAME,...]

Run it with an interpreter whose path has the package of the bench build. PYTHON are interpreters
with tensorflow, and with webdataset, Pillow, torch and pyarrow; peers without one are left out.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))
from rounds import facts, interleaved  # noqa: E402

FOLDER = ROOT / ".cache/records"
OURS = ["tfrecord_penstock", "interleave_penstock", "images_penstock_tar",
        "images_penstock_folder", "csv_penstock", "jsonl_penstock", "index_penstock",
        "index_text_penstock", "cache_epoch_2", "cache_epoch_2_random", "cache_gather",
        "cache_numpy_gather"]
TENSORFLOW = ["tfrecord_tfdata_batched", "tfrecord_tfdata_per_record", "interleave_tfdata"]
HF = ["images_webdataset", "csv_pyarrow", "jsonl_pyarrow"]
# What is wanted: the ratio of two medians, or a figure of its own.
RATIOS = {
    "TFRecord, to tf.data's batched form": ("tfrecord_penstock", "tfrecord_tfdata_batched", 5),
    "TFRecord, to its form per record": ("tfrecord_penstock", "tfrecord_tfdata_per_record", 30),
    "16 files, to tf.data's interleave": ("interleave_penstock", "interleave_tfdata", 5),
    "images of tar, to webdataset": ("images_penstock_tar", "images_webdataset", 4),
    "images of tar, to our folder": ("images_penstock_tar", "images_penstock_folder", 0.9),
    "numeric CSV, to pyarrow": ("csv_penstock", "csv_pyarrow", 1),
    "JSON lines, to pyarrow": ("jsonl_penstock", "jsonl_pyarrow", 1),
    "cache, epoch 2, to a gather of the engine": ("cache_epoch_2", "cache_gather", 0.9),
    "cache, epoch 2, to NumPy's gather": ("cache_epoch_2", "cache_numpy_gather", 0.9),
}


def job(python: str, name: str) -> object:
    def run() -> dict[str, object]:
        done = subprocess.run([python, HERE / "workloads.py", name, FOLDER], text=True,
                              capture_output=True, check=False, timeout=900,
                              env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode or not lines:
            return {"error": (done.stderr.strip().splitlines() or ["no output"])[-1][:300]}
        return json.loads(lines[-1])
    return run


def main() -> None:
    args = argparse.ArgumentParser(description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--rounds", type=int, default=5)
    args.add_argument("--tensorflow", default="")
    args.add_argument("--hf", default="")
    args.add_argument("--only", default="")
    args.add_argument("--out", type=pathlib.Path, default=ROOT / "bench/results/records.json")
    options = args.parse_args()
    sys.path.insert(0, str(HERE))
    import data
    data.make(FOLDER)
    jobs = {name: job(sys.executable, name) for name in OURS}
    if options.tensorflow:
        jobs |= {name: job(options.tensorflow, name) for name in TENSORFLOW}
    if options.hf:
        jobs |= {name: job(options.hf, name) for name in HF}
    if options.only:
        jobs = {name: jobs[name] for name in options.only.split(",")}
    figures = interleaved(jobs, options.rounds)
    summary = {}
    for name, runs in figures.items():
        errors = [run["error"] for run in runs if "error" in run]
        summary[name] = errors[-1] if errors else statistics.median(
            run["items_per_s"] for run in runs)
        print(f"{name:<30} {summary[name] if errors else format(summary[name], '16,.1f')}")
    ratios = {}
    for title, (ours, theirs, wanted) in RATIOS.items():
        if not all(isinstance(summary.get(name), float) for name in (ours, theirs)):
            continue
        ratio = statistics.median(mine["items_per_s"] / other["items_per_s"]
                                  for mine, other in zip(figures[ours], figures[theirs],
                                                         strict=True))
        ratios[title] = round(ratio, 3)
        print(f"{title}: {ratio:.2f} ({wanted} wanted)")
    random_cache = figures.get("cache_epoch_2_random", [])
    if random_cache and all("epoch_1" in run for run in random_cache):
        ratio = statistics.median(run["items_per_s"] / run["epoch_1"] for run in random_cache)
        ratios["cache, then flip and brightness: epoch 2 to epoch 1"] = round(ratio, 3)
        print(f"cache, then flip and brightness: epoch 2 to epoch 1: {ratio:.2f} (4 wanted)")
    options.out.write_text(json.dumps({"facts": facts(), "rounds": options.rounds,
                                       "summary": summary, "ratios": ratios, "runs": figures},
                                      indent=1) + "\n")


if __name__ == "__main__":
    main()
