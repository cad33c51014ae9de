#!/usr/bin/env python3
"""Weights, losses and metrics do not depend on how many processes train: penstock_workers under
torchrun with 2, 3 and 4 processes, and with 2 of 2 replicas each, beside one process.

    workers.py --program build/dev/train/penstock_workers --torchrun .venv/bin/torchrun
               [--device cuda --share-gpu]

--share-gpu: all processes use the first GPU. NCCL is told that they are hosts of their own.
"""

import argparse
import json
import os
import random
import subprocess
import tempfile
from pathlib import Path

BOUND = 300  # seconds; only a hang takes so long


def trained(options: argparse.Namespace, processes: int, replicas: int) -> dict[str, dict]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "out.json")
        devices = [f"{options.device}:{0 if options.share_gpu else r}" for r in range(replicas)]
        command = [options.program, str(file), *devices]
        if processes > 1:
            words = " ".join(command)
            host = "NCCL_HOSTID=host$RANK " if options.share_gpu else ""
            command = [options.torchrun, "--no-python", "--nproc-per-node", str(processes),
                       "--master-addr", "127.0.0.1", "--master-port",
                       str(random.randrange(20000, 30000)), "sh", "-c", f"{host}exec {words}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=BOUND, check=False,
                              env={**os.environ, "OMP_NUM_THREADS": "1"})
        if done.returncode:
            raise SystemExit(f"{processes} processes: {done.stderr}")
        return json.loads(file.read_text())


def difference(one: list[float], other: list[float]) -> float:
    assert len(one) == len(other)
    return max(abs(a - b) for a, b in zip(one, other)) / max(map(abs, one))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--torchrun", required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--share-gpu", action="store_true")
    options = parser.parse_args()
    alone = trained(options, 1, 1)
    shapes = [(2, 1)] if options.share_gpu else [(2, 1), (3, 1), (4, 1), (2, 2)]
    for processes, replicas in shapes:
        worst: dict[float, float] = {}
        for name, case in trained(options, processes, replicas).items():
            wanted, limit = alone[name], case["limit"]
            for kind in ("samples", "iterations"):
                assert case[kind] == wanted[kind], (name, kind)
            for kind in ("fit", "loop", "evaluate"):
                if kind not in case:
                    continue
                at_most = 1e-12 if kind == "evaluate" and limit < 1e-8 else limit  # double
                found = difference(wanted[kind], case[kind])
                worst[limit] = max(worst.get(limit, 0.0), found)
                if found > at_most:
                    raise SystemExit(f"{processes} x {replicas}, {name}: {kind} differs by {found}")
        found = ", ".join(f"{value:.1e} (at most {limit:.0e})"
                          for limit, value in sorted(worst.items()))
        print(f"{processes} processes of {replicas}: weights differ by {found}")


if __name__ == "__main__":
    main()
