"""A small GPT on packed documents: the same losses on any number of processes, and after a kill.

    python examples/python/gpt.py --out losses.json
    torchrun --standalone --nproc-per-node 3 examples/python/gpt.py --checkpoint saved

With `--checkpoint` the run can be killed at any time. The same command resumes it, and so does one
with a different number of processes. The text is Python's standard library, a token is a byte.
"""

import argparse
import glob
import json
import os
import sysconfig
from pathlib import Path

import numpy as np
import penstock as ps
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

SEPARATOR = 256  # ends each document; the tokens 0 to 255 are bytes
VOCABULARY = 257
IGNORED = -100  # the label of a token that has no next token in its document
WARM_UP = 20  # steps until the learning rate is reached
CLIP = 1.0  # the largest norm of a gradient
VALIDATION = 20  # steps


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(),
                                 nn.Linear(4 * width, width))

    def forward(self, x, mask):
        rows, length, width = x.shape
        parts = self.query_key_value(self.attention_norm(x))
        query, key, value = parts.view(rows, length, 3, self.heads, width // self.heads).permute(
            2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        x = x + self.projection(attended.transpose(1, 2).reshape(rows, length, width))
        return x + self.mlp(x)


class GPT(nn.Module):
    """Without dropout: its random numbers would depend on the number of processes."""

    def __init__(self, length, layers, heads, width):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.positions = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, VOCABULARY, bias=False)
        self.head.weight = self.tokens.weight
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens, positions, document):
        # A token attends to the tokens before it in its own document. Padding is document -1 and
        # attends to padding, so no row of the mask is empty.
        mask = (document[:, :, None] == document[:, None, :]).tril()[:, None]
        x = self.tokens(tokens) + self.positions(positions)
        for block in self.blocks:
            x = block(x, mask)
        return self.head(self.norm(x))


def read_documents(pattern):
    """Each file is a document. All of them are one array, and the offsets say where each begins."""
    texts = [Path(path).read_bytes() for path in sorted(glob.glob(pattern))]
    if not texts:
        raise SystemExit(f"--text: no file matches {pattern}")
    return ps.from_ragged(np.frombuffer(b"".join(texts), np.uint8),
                          np.cumsum([0, *map(len, texts)]))


def loss_of(model, batch):
    """The sum of the losses of this process's tokens, and how many tokens these are."""
    part = batch.torch()
    logits = model(part["tokens"], part["positions"], part["document"])
    losses = F.cross_entropy(logits.flatten(0, 1), part["labels"].flatten(), reduction="sum",
                             ignore_index=IGNORED)
    return losses, (part["labels"] != IGNORED).sum()


def over_processes(*numbers):
    """The sum of each number over all processes."""
    sums = torch.stack([each.detach().double() for each in numbers])
    if dist.is_initialized():
        dist.all_reduce(sums)
    return sums


def validate(model, loader):
    total = torch.zeros(2, dtype=torch.float64)
    with torch.no_grad():
        for batch in loader:
            total += over_processes(*loss_of(model, batch))
    return (total[0] / total[1]).item()


class Training:
    """What a checkpoint contains: model, optimizer, position in the data, and losses so far."""

    def __init__(self, arguments, batches):
        torch.manual_seed(0)
        self.model = GPT(arguments.length, arguments.layers, arguments.heads, arguments.width)
        self.model = self.model.to(getattr(torch, arguments.dtype))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), betas=(0.9, 0.95))
        self.loader = ps.Loader(batches)  # rank and world come from the process group
        self.losses = []
        self.learning_rate = arguments.learning_rate
        self.path = Path(arguments.checkpoint, "last.pt") if arguments.checkpoint else None

    def resume(self):
        if self.path and self.path.exists():
            saved = torch.load(self.path, weights_only=True)
            self.model.load_state_dict(saved["model"])
            self.optimizer.load_state_dict(saved["optimizer"])
            self.loader.load_state_dict(saved["loader"])
            self.losses = saved["losses"]
        return len(self.losses)

    def save(self):
        """Replaces the checkpoint by a rename, so a kill leaves the old or the new one whole."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(),
                    "loader": self.loader.state_dict(), "losses": self.losses},
                   self.path.with_suffix(".new"))
        os.replace(self.path.with_suffix(".new"), self.path)

    def step(self, wrapped, batch, world):
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate * min(1.0, (len(self.losses) + 1) / WARM_UP)
        loss, tokens = loss_of(wrapped, batch)
        all_losses, all_tokens = over_processes(loss, tokens)
        # Every token of the step must have the same weight, whichever process it is on. So each
        # process divides its sum by the tokens of all processes. DDP averages the gradients, which
        # divides them by `world` as well, and the factor `world` undoes that. With a mean over its
        # own tokens, a process that has few of them would give each of them too much weight.
        self.optimizer.zero_grad()
        (loss * (world / all_tokens)).backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.optimizer.step()
        self.losses.append((all_losses / all_tokens).item())


def train(arguments, rank, world):
    # The split is by documents and the same on every process, as is the packing. `batch` is the
    # number of rows over all processes; "even" leaves no step with fewer rows than processes.
    documents, held_out = read_documents(arguments.text).split(0.95, seed=1)
    batches, validation = (
        part.pack(arguments.length, separator=SEPARATOR).batch(arguments.batch, tail="even")
        for part in (documents.shuffle(seed=7), held_out))
    training = Training(arguments, batches)
    resumed = training.resume()
    if rank == 0 and resumed:
        print(f"resumed after step {resumed}", flush=True)
    model = training.model
    wrapped = DistributedDataParallel(model) if dist.is_initialized() else model

    while len(training.losses) < arguments.steps:
        for batch in training.loader:  # each `for` is an epoch, or the rest of a resumed one
            training.step(wrapped, batch, world)
            steps = len(training.losses)
            if rank == 0 and steps % 10 == 0:
                print(f"step {steps}: loss {training.losses[-1]:.4f}", flush=True)
            if rank == 0 and training.path and (
                    steps % arguments.save_every == 0 or steps == arguments.steps):
                training.save()  # the loader's state is the same on every process
            if steps >= arguments.steps:
                break

    held_out_loss = validate(model, ps.Loader(validation.take(VALIDATION)))
    if rank == 0:
        print(f"{len(training.losses)} steps, validation loss {held_out_loss:.4f}")
        if arguments.out:
            Path(arguments.out).write_text(json.dumps(
                {"losses": training.losses, "validation": held_out_loss}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", default=os.path.join(sysconfig.get_path("stdlib"), "*.py"),
                        metavar="GLOB", help="the files to learn, each of them a document")
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--batch", type=int, default=16, help="rows of a step, all processes")
    parser.add_argument("--length", type=int, default=128, help="tokens in a row")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    # Another number of processes adds up the gradients in another order. float32 is twice as fast,
    # but after 200 steps that order alone has changed the losses by 1e-5.
    parser.add_argument("--dtype", choices=("float64", "float32"), default="float64")
    parser.add_argument("--checkpoint", metavar="DIR", help="where to save, and to resume from")
    parser.add_argument("--save-every", type=int, default=10, metavar="STEPS")
    parser.add_argument("--out", metavar="LOSSES.json", help="the losses of all steps")
    arguments = parser.parse_args()

    if "RANK" in os.environ:  # set by torchrun
        dist.init_process_group("gloo")
        try:
            train(arguments, dist.get_rank(), dist.get_world_size())
        finally:
            dist.destroy_process_group()
    else:
        train(arguments, 0, 1)


if __name__ == "__main__":
    main()
