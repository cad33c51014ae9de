"""What the articles' programs share: samples that carry their number, a tiny linear model, and fit
as a loop over strategy.run."""

import struct
import threading
import zlib

import numpy as np

import penstock as ps

REPLICAS = (1, 2, 3, 4, 8)


def devices(count):
    return [f"cpu:{i}" for i in range(count)]


def ids_of(share):
    """Numbers of the samples in a share, without padding: the elements, or their field "id"."""
    rows = share["id"] if "id" in share else share.numpy()
    return rows[share.valid].tolist()


def ids_of_step(step):
    return [number for share in step.shares for number in ids_of(share)]


def features(ids):
    ids = np.asarray(ids, dtype=np.float64)
    return np.stack([np.sin(ids), np.cos(ids), np.ones_like(ids)], axis=1)


def gradients(weights, ids):
    """One row for each sample."""
    x = features(ids)
    return (x @ weights - np.asarray(ids) % 7)[:, None] * x


def by_hand(steps):
    """The weights of one device, from plain loops and nothing of the library."""
    weights = np.zeros(3)
    for ids in steps:
        weights = weights - 0.1 * gradients(weights, ids).mean(axis=0)
    return weights


def in_steps(count, size):
    return [list(range(i, min(i + size, count))) for i in range(0, count, size)]


class Fit:
    """What a fit did. The loss of every sample is 1, so any other loss is a wrong weight."""

    def __init__(self, dataset, replicas, epochs=1, **options):
        self.weights = np.zeros(3)
        self.steps, self.losses, self.ids = [], [], []
        self.iterations = 0
        strategy = ps.MirroredStrategy(devices(replicas))
        feed = strategy.distribute(dataset, **options)
        for _ in range(epochs):
            losses, counts, ids, steps = 0.0, 0, [], 0
            for step in feed:
                made = strategy.run(self.share_gradient, step)
                gradient, loss = strategy.reduce("mean", made)
                self.weights = self.weights - 0.1 * gradient
                losses += float(loss) * step.valid_count
                counts += step.valid_count
                ids += ids_of_step(step)
                steps += 1
            self.iterations += steps
            self.steps.append(steps)
            self.losses.append(losses / counts)
            self.ids.append(ids)

    def share_gradient(self, share):
        ids = ids_of(share)
        return (ps.Counted(gradients(self.weights, ids).sum(axis=0), len(ids)),
                ps.Counted(float(len(ids)), len(ids)))


class Meeting:
    """Notices two calls at once: one that is alone waits for another, until two have met."""

    def __init__(self):
        self.inside = 0
        self.met = threading.Event()

    def __enter__(self):
        self.inside += 1  # with the interpreter lock held
        if self.inside == 2:
            self.met.set()
        self.met.wait(10)

    def __exit__(self, *_):
        self.inside -= 1


class Batches(ps.Sequence):
    """Batches of consecutive numbers; `sizes` says how many rows each has."""

    def __init__(self, sizes):
        self.num_batches = len(sizes)  # as in the article: the name is the user's
        self.first = np.cumsum([0, *sizes])
        self.calls = []

    def __len__(self):
        return self.num_batches

    def __getitem__(self, index):
        self.calls.append(index)
        return np.arange(self.first[index], self.first[index + 1])


def png(path, pixels):
    """A PNG file of 8-bit RGB, by hand."""
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + pixels[y].tobytes() for y in range(height))

    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data
                + struct.pack(">I", zlib.crc32(kind + data)))

    path.write_bytes(b"\x89PNG\r\n\x1a\n"
                     + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
                     + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
