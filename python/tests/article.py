"""Shared by the articles' programs: samples that contain their number, a tiny linear model, and fit
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
    """The weights of one device, from plain loops, without the library."""
    weights = np.zeros(3)
    for ids in steps:
        weights = weights - 0.1 * gradients(weights, ids).mean(axis=0)
    return weights


def in_steps(count, size):
    return [list(range(i, min(i + size, count))) for i in range(0, count, size)]


class Sgd:
    def __init__(self, weights):
        self.weights = weights

    def step(self, gradient):
        self.weights = self.weights - 0.1 * gradient


class Adam(Sgd):
    decay = 0.0

    def __init__(self, weights):
        super().__init__(weights)
        self.steps, self.mean, self.square = 0, np.zeros_like(weights), np.zeros_like(weights)

    def step(self, gradient):
        self.steps += 1
        self.mean = 0.9 * self.mean + 0.1 * gradient
        self.square = 0.999 * self.square + 0.001 * gradient**2
        mean = self.mean / (1 - 0.9**self.steps)
        square = self.square / (1 - 0.999**self.steps)
        self.weights = ((1 - 0.01 * self.decay) * self.weights
                        - 0.01 * mean / (np.sqrt(square) + 1e-8))


class AdamW(Adam):
    decay = 0.1


class Fit:
    """The result of a fit. The loss of every sample is 1, so any other loss is a wrong weight."""

    def __init__(self, dataset, replicas, epochs=1, optimizer=Sgd, **options):
        self.weights = np.zeros(3)
        optimizer = optimizer(self.weights)
        self.steps, self.losses, self.ids = [], [], []
        self.iterations = 0
        strategy = ps.MirroredStrategy(devices(replicas))
        feed = strategy.distribute(dataset, **options)
        for epoch in range(epochs):
            losses, counts, ids, steps = 0.0, 0, [], 0
            for step in feed:
                made = strategy.run(self.share_gradient, step)
                gradient, loss = strategy.reduce("mean", made)
                optimizer.step(gradient)
                self.weights = optimizer.weights
                losses += float(loss) * step.valid_count
                counts += step.valid_count
                ids += ids_of_step(step)
                steps += 1
            self.iterations += steps
            self.steps.append(steps)
            assert counts > 0, f"epoch {epoch} has no data"
            self.losses.append(losses / counts)
            self.ids.append(ids)

    def share_gradient(self, share):
        ids = ids_of(share)
        return (ps.Counted(gradients(self.weights, ids).sum(axis=0), len(ids)),
                ps.Counted(float(len(ids)), len(ids)))


class Meeting:
    """Detects two concurrent calls: the first waits for another, until two have met or one
    has waited in vain."""

    def __init__(self):
        self.inside = 0
        self.alone = False
        self.met = threading.Event()

    def __enter__(self):
        self.inside += 1  # with the interpreter lock held
        if self.inside == 2:
            self.met.set()
        if not self.alone and not self.met.wait(10):
            self.alone = True

    def __exit__(self, *_):
        self.inside -= 1


class Batches(ps.Sequence):
    """Batches of consecutive numbers; `sizes` has the number of rows of each."""

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


def influences(samples, batch, replicas, loop):
    """How much each sample moves the model, relative to the expected amount."""
    strategy = ps.MirroredStrategy(devices(replicas))
    moved = np.zeros(samples)
    for step in strategy.distribute(ps.range(samples).batch(batch)):
        def one_hot(share):
            rows = np.zeros((len(share), samples))
            rows[np.arange(len(share)), ids_of(share)] = 1
            if loop == "mean":
                return rows.mean(axis=0)
            if loop == "global":
                return rows.sum(axis=0) / share.global_valid
            return (share.weight[:, None] * rows).mean(axis=0) * share.loss_scale / replicas
        made = strategy.run(one_hot, step)
        moved += strategy.reduce("mean" if loop == "mean" else "sum", made) * step.valid_count
    return moved


class LightOrDark:
    """Separates light images from dark ones with one weight."""

    def __init__(self):
        self.weight, self.bias = 0.0, 0.0

    def guess(self, images):
        light = images.mean(axis=(1, 2, 3)) - 0.5
        return light, 1 / (1 + np.exp(-(self.weight * light + self.bias)))

    def gradient(self, share):
        light, guessed = self.guess(share["image"])
        errors = guessed - share["label"]
        return ps.Counted(np.array([errors @ light, errors.sum()]), len(share))

    def step(self, gradient):
        self.weight, self.bias = self.weight - 20 * gradient[0], self.bias - gradient[1]


class InnerIterator(Batches):
    """Returns its next entry, whatever the index."""

    def __init__(self, sizes):
        super().__init__(sizes)
        self.inner = iter(range(100))

    def __getitem__(self, index):
        return np.array([next(self.inner)])


def refusal_of(call):
    """The text of the ConfigError that `call` raises, or None."""
    try:
        call()
    except ps.ConfigError as error:
        return str(error)
    except Exception as error:
        return f"another error: {type(error).__name__}"
    return ""


def write_dark_and_light(folder, count):
    """PNGs of 100 x 100 in two classes, alternating."""
    for i in range(count):
        name = ("dark", "light")[i % 2]
        pixels = np.random.default_rng(i).integers(0, 128, (100, 100, 3), np.uint8)
        (folder / name).mkdir(exist_ok=True)
        png(folder / name / f"{i:03}.png", pixels + np.uint8(127 * (i % 2)))
