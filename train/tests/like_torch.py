#!/usr/bin/env python3
"""The same network, batches and optimizer in plain PyTorch, 50 updates: with SGD the weights are
equal to the bit, with Adam to 1e-5 (it is written in another order of operations there)."""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

DTYPES = {"F32": torch.float32, "I64": torch.int64}


def read(path: Path) -> dict[str, torch.Tensor]:
    """A safetensors file."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    tensors = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        values = torch.frombuffer(bytearray(data[8 + size + first:8 + size + last]),
                                  dtype=DTYPES[entry["dtype"]])
        tensors[name] = values.reshape(entry["shape"])
    return tensors


def trained(first: dict, batches: dict, optimizer: str) -> dict[str, torch.Tensor]:
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(), torch.nn.Linear(8 * 6 * 6, 4))
    net.load_state_dict(first)
    step = (torch.optim.Adam(net.parameters(), 1e-3) if optimizer == "adam"
            else torch.optim.SGD(net.parameters(), 0.05, momentum=0.9))
    for number in range(len(batches) // 2):
        loss = torch.nn.functional.cross_entropy(net(batches[f"image{number}"]),
                                                 batches[f"label{number}"])
        step.zero_grad()
        loss.backward()
        step.step()
    return {name: value.detach() for name, value in net.named_parameters()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    program = parser.parse_args().program
    torch.set_num_threads(1)
    wrong = 0
    for optimizer, limit in (("sgd", 0.0), ("adam", 1e-5)):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([program, folder, optimizer], check=True)
            ours = read(Path(folder, "last.safetensors"))
            theirs = trained(read(Path(folder, "first.safetensors")),
                             read(Path(folder, "batches.safetensors")), optimizer)
        worst = max(((ours[name] - value).abs().max() / value.abs().max()).item()
                    for name, value in theirs.items())
        # Adam is written in another order of operations in Python and in C++.
        equal = all(torch.equal(ours[name], value) for name, value in theirs.items())
        print(f"{optimizer}: after 50 updates {'equal to the bit' if equal else worst}")
        wrong += not (equal if limit == 0 else worst <= limit)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
