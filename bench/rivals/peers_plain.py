"""The peers' pixels with random ops off, for check_pixels.py.

    peers_plain.py PEER W1|W2 DATA FILE     (in the peer's environment)

Writes the first images, in order of their names, as float32 rows of RGB in [0, 1]: W1 resized to
64 x 64, W2 the middle 224 x 224 resized to 160 x 160, with the calls of peers/*.py.
"""

import pathlib
import sys

import numpy as np

IMAGES = 64


def tfdata(paths: list[str], size: int, crop: int) -> np.ndarray:
    import tensorflow as tf

    def load(path: str) -> np.ndarray:
        image = tf.io.decode_image(tf.io.read_file(path), 3, expand_animations=False)
        if crop:
            top, left = (image.shape[0] - crop) // 2, (image.shape[1] - crop) // 2
            image = image[top : top + crop, left : left + crop]
        return tf.image.resize(image, (size, size), antialias=bool(crop)).numpy() / 255

    return np.stack([load(path) for path in paths])


def torch(paths: list[str], size: int, crop: int) -> np.ndarray:
    import torch as t
    from torchvision.io import ImageReadMode, decode_image, read_file
    from torchvision.transforms import v2

    resize = v2.Resize((size, size), antialias=bool(crop))
    to_float = v2.ToDtype(t.float32, scale=True)

    def load(path: str) -> t.Tensor:
        image = decode_image(read_file(path), ImageReadMode.RGB)
        if crop:  # by hand: CenterCrop rounds half a pixel up
            top, left = (image.shape[1] - crop) // 2, (image.shape[2] - crop) // 2
            image = image[:, top : top + crop, left : left + crop]
        return to_float(resize(image))

    return t.stack([load(path) for path in paths]).permute(0, 2, 3, 1).numpy()


def dali(paths: list[str], size: int, crop: int) -> np.ndarray:
    from nvidia.dali import fn, pipeline_def, types

    @pipeline_def(batch_size=len(paths), num_threads=2, device_id=None)
    def images() -> object:
        data, _ = fn.readers.file(files=paths)
        x = fn.decoders.image(data, device="cpu", output_type=types.RGB)
        if crop:
            x = fn.crop(x, crop=(crop, crop), rounding="truncate")
        x = fn.resize(
            x, size=(size, size), interp_type=types.INTERP_LINEAR, antialias=bool(crop)
        )
        return fn.crop_mirror_normalize(x, dtype=types.FLOAT, output_layout="HWC", scale=1 / 255)

    pipe = images()
    pipe.build()
    return pipe.run()[0].as_array()


def mlx(paths: list[str], size: int, crop: int) -> np.ndarray:
    import mlx.data as dx

    rows = dx.buffer_from_vector([{"image": path.encode()} for path in paths]).load_image("image")
    if crop:
        rows = rows.image_center_crop("image", crop, crop)
    rows = rows.image_resize("image", size, size)
    return np.stack([rows[i]["image"] for i in range(len(rows))]).astype(np.float32) / 255


PEERS = {"tf.data": tfdata, "torch": torch, "DALI": dali, "mlx-data": mlx}


def main() -> None:
    peer, workload, data, file = sys.argv[1:]
    folder, ending = ("png_photos", "*.png") if workload == "W1" else ("photos", "*.jpg")
    root = pathlib.Path(data, folder)
    paths = sorted(root.glob("*/" + ending), key=lambda path: str(path.relative_to(root)).encode())
    size, crop = (64, 0) if workload == "W1" else (160, 224)
    images = PEERS[peer]([str(path) for path in paths[:IMAGES]], size, crop)
    images.astype(np.float32).tofile(file)


if __name__ == "__main__":
    main()
