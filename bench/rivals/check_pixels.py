#!/usr/bin/env python3
"""Compares images that penstock_images wrote with Pillow's, one by one.

check_pixels.py W1|W2 DATA FILE
"""

import json
import pathlib
import sys

import numpy as np
from PIL import Image

MEAN, STD = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])


def main() -> None:
    workload, data, file = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    folder, ending = ("png", "*.png") if workload == "W1" else ("photos", "*.jpg")
    root = data / folder
    paths = sorted(root.glob("*/" + ending), key=lambda path: str(path.relative_to(root)).encode())
    size = 64 if workload == "W1" else 160
    shape = (-1, size, size, 3) if workload == "W1" else (-1, 3, size, size)
    ours = np.fromfile(file, np.float32).reshape(shape)
    if workload == "W2":
        ours = ours.transpose(0, 2, 3, 1) * STD + MEAN
    worst, mean = 0.0, 0.0
    for image, path in zip(ours, paths, strict=False):
        with Image.open(path) as picture:
            picture = picture.convert("RGB")
        if workload == "W2":
            left, top = (picture.width - 224) // 2, (picture.height - 224) // 2
            picture = picture.crop((left, top, left + 224, top + 224))
        theirs = np.asarray(picture.resize((size, size), Image.BILINEAR), np.float32)
        difference = np.abs(np.rint(image * 255) - theirs)  # Pillow gives bytes
        worst, mean = (
            max(worst, float(difference.max())),
            mean + float(difference.mean()) / len(ours),
        )
    if worst > 1.0:
        raise SystemExit(f"{workload}: {worst} levels from Pillow")
    print(
        json.dumps(
            {"images": len(ours), "worst_levels": round(worst, 3), "mean_levels": round(mean, 4)}
        )
    )


if __name__ == "__main__":
    main()
