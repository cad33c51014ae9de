#!/usr/bin/env python3
"""Compares images that were written without random ops with plain ones, one by one.

check_pixels.py W1|W2 DATA FILE             penstock_images' file, with Pillow's pixels
check_pixels.py W1|W2 DATA FILE PEER        peers_plain.py's file, with its filter's

Differences are in levels of 255. Ours may be 1 from Pillow, which rounds to bytes; what the peers
may be is in TOLERANCES. Prints them as JSON, and fails beyond.
"""

import json
import pathlib
import sys

import numpy as np
from PIL import Image

MEAN, STD = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
# Peer and workload -> the filter it is compared with, largest and mean difference. DALI and torch
# round to bytes after the resize, torch with weights of 16 bits. JPEG decoders differ by some
# levels among each other, and tf.data's defaults to a faster and less exact transform.
TOLERANCES = {
    ("tf.data", "W1"): ("bilinear", 0.1, 0.01),
    ("DALI", "W1"): ("bilinear", 1, 0.5),
    ("torch", "W1"): ("bilinear", 1.1, 0.5),
    ("mlx-data", "W1"): ("antialiased", 16, 0.5),
    ("tf.data", "W2"): ("antialiased", 24, 1.5),
    ("DALI", "W2"): ("antialiased", 8, 0.5),
    ("torch", "W2"): ("antialiased", 8, 0.5),
    ("mlx-data", "W2"): ("antialiased", 8, 0.5),
}


def bilinear(image: np.ndarray, size: int) -> np.ndarray:
    """Two neighbors in each direction, whatever the scale: no antialiasing."""
    for axis in (0, 1):
        length = image.shape[axis]
        at = np.clip((np.arange(size) + 0.5) * length / size - 0.5, 0, length - 1)
        first = np.minimum(at.astype(int), length - 2)
        shape = [-1 if i == axis else 1 for i in range(3)]
        part = (at - first).reshape(shape)
        image = image.take(first, axis) * (1 - part) + image.take(first + 1, axis) * part
    return image


def plain(path: pathlib.Path, workload: str, filter_name: str, size: int) -> np.ndarray:
    with Image.open(path) as picture:
        picture = picture.convert("RGB")
    if workload == "W2":
        left, top = (picture.width - 224) // 2, (picture.height - 224) // 2
        picture = picture.crop((left, top, left + 224, top + 224))
    if filter_name == "bilinear":
        return bilinear(np.asarray(picture, np.float64), size)
    return np.asarray(picture.resize((size, size), Image.BILINEAR), np.float64)


def main() -> None:
    workload, data, file = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    peer = sys.argv[4] if len(sys.argv) > 4 else ""
    folder, ending = ("png_photos", "*.png") if workload == "W1" else ("photos", "*.jpg")
    root = data / folder
    paths = sorted(root.glob("*/" + ending), key=lambda path: str(path.relative_to(root)).encode())
    size = 64 if workload == "W1" else 160
    images = np.fromfile(file, np.float32)
    if workload == "W2" and not peer:
        images = images.reshape(-1, 3, size, size).transpose(0, 2, 3, 1) * STD + MEAN
    images = images.reshape(-1, size, size, 3) * 255
    if not peer:
        images = np.rint(images)  # as Pillow does
    filter_name, worst_max, mean_max = TOLERANCES[peer, workload] if peer else ("antialiased", 1, 1)
    differences = [
        np.abs(image - plain(path, workload, filter_name, size))
        for image, path in zip(images, paths, strict=False)
    ]
    worst = max(float(difference.max()) for difference in differences)
    mean = float(np.mean([difference.mean() for difference in differences]))
    found = {"images": len(images), "worst_levels": round(worst, 3), "mean_levels": round(mean, 4)}
    if peer:
        found |= {"filter": filter_name, "worst_max": worst_max, "mean_max": mean_max}
    print(json.dumps(found))
    if worst > worst_max or mean > mean_max:
        raise SystemExit(f"{peer or 'penstock'} {workload}: pixels beyond the tolerance: {found}")


if __name__ == "__main__":
    main()
