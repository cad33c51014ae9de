#!/usr/bin/env python3
"""Makes PNGs of 100 x 100 in ten class folders, half crops of photos and half noise, the same
every time.

python3 make_pngs.py --out png --count 20000 [--wallpapers ROOT]
"""

import argparse
import glob
import os
import pathlib

import numpy as np
from make_photos import PATTERNS
from PIL import Image


def main() -> None:
    args = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    args.add_argument("--out", default="png")
    args.add_argument("--count", type=int, default=20000)
    args.add_argument(
        "--wallpapers", default="/", help="folder under which the packages' files lie"
    )
    options = args.parse_args()
    files = sorted(f for p in PATTERNS for f in glob.glob(os.path.join(options.wallpapers, p)))
    if not files:
        raise SystemExit(
            "no wallpapers found: install mate-backgrounds and plasma-workspace-wallpapers"
        )
    photos = [Image.open(file).convert("RGB") for file in files]
    rng = np.random.default_rng(7)
    for i in range(options.count):
        folder = pathlib.Path(options.out, str(i % 10))
        folder.mkdir(parents=True, exist_ok=True)
        if (i // 10) % 2:
            picture = Image.fromarray(rng.integers(0, 256, (100, 100, 3), dtype=np.uint8))
        else:
            photo = photos[rng.integers(len(photos))]
            side = int(100 * rng.uniform(1, 6))
            x, y = rng.integers(photo.width - side), rng.integers(photo.height - side)
            picture = photo.crop((x, y, x + side, y + side)).resize((100, 100), Image.LANCZOS)
        picture.save(folder / f"{i:05d}.png")


if __name__ == "__main__":
    main()
