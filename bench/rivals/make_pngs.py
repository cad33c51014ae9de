#!/usr/bin/env python3
"""Makes PNGs of 100 x 100 in ten class folders, the same every time: OUT_photos holds crops of
photos, OUT_noise as many pictures of noise, which PNG can hardly compress.

python3 make_pngs.py --out png --count 20000 [--wallpapers ROOT]     (10,000 of each)
"""

import pathlib

import numpy as np
from make_photos import start
from PIL import Image


def main() -> None:
    options, photos = start(__doc__, out="png", count=20000)
    rng = np.random.default_rng(7)
    for i in range(options.count):
        noise = (i // 10) % 2
        folder = pathlib.Path(f"{options.out}_{'noise' if noise else 'photos'}", str(i % 10))
        folder.mkdir(parents=True, exist_ok=True)
        if noise:
            picture = Image.fromarray(rng.integers(0, 256, (100, 100, 3), dtype=np.uint8))
        else:
            photo = photos[rng.integers(len(photos))]
            side = int(100 * rng.uniform(1, 6))
            x, y = rng.integers(photo.width - side), rng.integers(photo.height - side)
            picture = photo.crop((x, y, x + side, y + side)).resize((100, 100), Image.LANCZOS)
        picture.save(folder / f"{i:05d}.png")


if __name__ == "__main__":
    main()
