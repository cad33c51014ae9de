"""Files for the benchmarks of records, made once in a folder."""

import io
import json
import pathlib
import tarfile

import numpy as np

RECORDS = 300_000
ROWS = 400_000
IMAGES = 4_000


def make(folder: pathlib.Path) -> None:
    if (folder / "done").exists():
        return
    import penstock as ps

    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(7)
    payload = random.integers(0, 256, (RECORDS, 1000), dtype=np.uint8)
    records = ps.from_tensor_slices({"x": payload, "y": np.arange(RECORDS) % 100}).map(
        lambda sample: {"x": sample["x"].tobytes(), "y": sample["y"]}, name="bytes")
    ps.write_records(records, folder / "records", shards=1)
    ps.write_records(records.take(160_000), folder / "sixteen", shards=16)
    table = random.standard_normal((ROWS, 10)).astype(np.float32)
    with open(folder / "table.csv", "w", encoding="ascii") as out:
        out.write(",".join(["id", *(f"c{i}" for i in range(10))]) + "\n")
        for i, row in enumerate(table):
            out.write(f"{i}," + ",".join(f"{value:.6g}" for value in row) + "\n")
    with open(folder / "table.jsonl", "w", encoding="ascii") as out:
        for i, row in enumerate(table):
            out.write(json.dumps({"id": i, **{f"c{j}": round(float(value), 6)
                                              for j, value in enumerate(row)}}) + "\n")
    _make_images(folder, random)
    (folder / "done").touch()


def _make_images(folder: pathlib.Path, random: np.random.Generator) -> None:
    """Smooth 100 x 100 PNGs in 10 classes: as a folder, and as 4 tar files in random order."""
    import penstock as ps

    y, x = np.mgrid[0:100, 0:100].astype(np.float32)
    waves = random.random((IMAGES, 6)).astype(np.float32)

    def picture(i: int) -> dict[str, object]:
        a, b, c, d, e, f = waves[i]
        plane = np.sin(x * a / 4 + y * b / 4 + c * 6) * 60 + np.cos(x * d / 9 - y * e / 9) * 50
        noise = (x * 31 + y * 17 + i) % 7
        return {"image": np.stack([plane + 128 + noise, plane * f + 120, 90 - plane * f], -1)
                .clip(0, 255).astype(np.uint8)}

    encoded = ps.from_index(IMAGES, picture, name="pictures").map(ps.image.encode("png"))
    files = []
    for i, sample in enumerate(encoded):
        path = folder / "png" / str(i % 10) / f"{i:05}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(sample["image"])
        files.append((path, i % 10))
    order = random.permutation(IMAGES)
    for shard in range(4):
        with tarfile.open(folder / f"images-{shard:02}.tar", "w") as archive:
            for i in order[shard::4]:
                path, label = files[i]
                archive.add(path, path.name)
                member = tarfile.TarInfo(f"{path.stem}.cls")
                member.size = 1
                archive.addfile(member, io.BytesIO(b"%d" % label))
