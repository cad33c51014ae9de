"""DDP on uneven data: 103 samples in global batches of 16 give every process its share, the last
step has 7 samples, and the weights are those that one process would have learned.

    torchrun --standalone --nproc_per_node 3 examples/python/ddp_uneven.py
    python examples/python/ddp_uneven.py          # one process, the same weights

`--stop-after N` ends after N steps and saves; `--resume` goes on from there, with as many
processes as you like.
"""

import argparse
import os

import numpy as np
import penstock as ps
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def samples():
    draw = np.random.default_rng(7)
    x = draw.normal(size=(103, 8))
    return {"x": x, "y": np.tanh(x @ draw.normal(size=(8, 1)))}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--tail", default="short")
    parser.add_argument("--checkpoint", default="")
    parser.add_argument("--stop-after", type=int, default=0)
    parser.add_argument("--resume", action="store_true")
    arguments = parser.parse_args()
    launched = "RANK" in os.environ
    if launched:
        dist.init_process_group("gloo")

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    model = model.double()
    wrapped = DistributedDataParallel(model) if launched else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

    # world and rank come from the process group; batch(16) is the global batch.
    dataset = ps.from_tensor_slices(samples()).shuffle(seed=7).batch(16)
    loader = ps.Loader(dataset, tail=arguments.tail)
    steps = 0
    if arguments.resume:
        saved = torch.load(arguments.checkpoint, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["loader"])
        steps = saved["steps"]

    while loader.epoch < arguments.epochs:
        for batch in loader:
            part = batch.torch()
            losses = (wrapped(part["x"]) - part["y"]).square()
            optimizer.zero_grad()
            ps.torch.weighted_mean(losses, batch).backward()
            optimizer.step()
            steps += 1
            if steps == arguments.stop_after:
                break
        if steps == arguments.stop_after:
            break

    if not launched or dist.get_rank() == 0:
        print(f"{steps} steps, weights {sum(p.sum().item() for p in model.parameters()):.15f}")
        if arguments.checkpoint:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                        "loader": loader.state_dict(), "steps": steps}, arguments.checkpoint)
    if launched:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
