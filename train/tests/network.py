#!/usr/bin/env python3
"""Three hosts in network namespaces: one is killed, one cut off; the rest say so, end, and go on.

Needs root and `ip` (Debian's iproute2), and is not part of `make test`:
    sudo python3 train/tests/network.py --command build/dev/bin/penstock
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from command import environment, logs, make_pictures

TIMEOUT = 15  # seconds, as told to the command


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


class Hosts:
    """Namespaces joined by a bridge, host n at 10.77.0.n+1."""

    def __init__(self, count: int) -> None:
        self.names = [f"pst{number}" for number in range(count)]
        ip("link", "add", "pstbr", "type", "bridge")
        ip("link", "set", "pstbr", "up")
        for number, name in enumerate(self.names):
            ip("netns", "add", name)
            ip("link", "add", f"v{name}", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", f"v{name}", "master", "pstbr", "up")
            ip("-n", name, "addr", "add", f"10.77.0.{number + 1}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")

    def cut_off(self, number: int) -> None:
        ip("link", "set", f"v{self.names[number]}", "down")

    def close(self) -> None:
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False)
        subprocess.run(["ip", "link", "del", "pstbr"], check=False)

    def start(self, command: str, ranks: int, arguments: list[str]) -> list[subprocess.Popen]:
        started = []
        for rank in range(ranks):
            own = {**environment(), "RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": "0",
                   "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": "10.77.0.1", "MASTER_PORT": "29511"}
            started.append(subprocess.Popen(
                ["ip", "netns", "exec", self.names[rank], command, "train", *arguments],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=own))
        return started


def wait_for_epoch(log: Path, epochs: int) -> None:
    while not log.exists() or len(logs(log)) < epochs:
        time.sleep(0.05)


def trial(command: str, root: Path, kind: str) -> bool:
    hosts = Hosts(3)
    try:
        log, saved = root / f"{kind}.json", root / kind
        arguments = ["--data", str(root / "data"), "--size", "16", "--batch", "16", "--model",
                     "linear", "--resume", str(saved), "--json", str(log), "--timeout",
                     str(TIMEOUT), "--epochs"]
        processes = hosts.start(command, 3, [*arguments, "100000"])
        wait_for_epoch(log, 3)
        if kind == "killed":
            processes[2].kill()
            for pid in subprocess.run(["ip", "netns", "pids", hosts.names[2]], text=True,
                                      capture_output=True, check=False).stdout.split():
                os.kill(int(pid), 9)
        else:
            hosts.cut_off(2)
        began = time.monotonic()
        good = True
        for rank in (0, 1):
            _, errors = processes[rank].communicate(timeout=120)
            took = time.monotonic() - began
            named = "rank 2 of 3 has sent no heartbeat" in errors
            code = processes[rank].returncode
            print(f"{kind}: rank {rank} ended with {code} after {took:.1f} s; "
                  f"{'names rank 2' if named else errors}")
            good &= named and processes[rank].returncode == 1 and took < TIMEOUT + 5
        if kind == "cut off":
            _, errors = processes[2].communicate(timeout=120)
            print(f"{kind}: the lost one says: {errors.strip().splitlines()[-1][:160]}")
            good &= "has no connection" in errors
        done = len(logs(log))
        rest = hosts.start(command, 2, [*arguments, str(done + 2)])
        for process in rest:
            out, errors = process.communicate(timeout=120)
            good &= process.returncode == 0
        print(f"{kind}: resumed on 2 hosts, epochs {[one['epoch'] for one in logs(log)][-3:]}, "
              f"samples {logs(log)[-1]['samples']}")
        return good and [one["epoch"] for one in logs(log)] == list(range(done + 2))
    finally:
        hosts.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--command", required=True)
    command = os.path.abspath(parser.parse_args().command)
    root = Path(tempfile.mkdtemp(prefix="penstock-network-"))
    make_pictures(root / "data", 97)
    try:
        good = [trial(command, root, kind) for kind in ("killed", "cut off")]
    finally:
        shutil.rmtree(root)
    print("it holds" if all(good) else "IT DOES NOT HOLD")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
