"""Folders of images and chains of image ops."""

import pathlib

import numpy as np
import pytest

import penstock as ps


def ppm(pixels: np.ndarray) -> bytes:
    height, width, _ = pixels.shape
    return b"P6 %d %d 255\n" % (width, height) + pixels.tobytes()


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    for i in range(10):
        file = tmp_path / "ab"[i % 2] / f"{i}.ppm"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(ppm(np.full((20, 30, 3), 10 * i, np.uint8)))
    return tmp_path


def test_a_folder_becomes_batches_of_floats(folder: pathlib.Path) -> None:
    ds = ps.image_folder(folder).map(ps.image.decode().resize(8, 8).to_float()).batch(4)
    rows = [(label, image) for batch in ps.Loader(ds)
            for label, image in zip(batch["label"].copy(), batch["image"].copy())]
    assert [label for label, _ in rows] == [0] * 5 + [1] * 5
    assert rows[1][1].shape == (8, 8, 3) and rows[1][1].dtype == np.float32
    np.testing.assert_allclose(rows[1][1], 20 / 255, atol=1e-3)


def test_the_ops_are_methods_with_signatures_and_words(folder: pathlib.Path) -> None:
    import inspect
    signature = inspect.signature(ps.image.Chain.resize)
    assert list(signature.parameters) == ["self", "height", "width", "filter", "antialias"]
    assert signature.parameters["antialias"].default is True
    assert "rows of the result" in (ps.image.Chain.resize.__doc__ or "")
    with pytest.raises(TypeError):
        ps.image.of().resize(3)
    with pytest.raises(ps.ConfigError, match="0.2 is 51 of 255"):
        ps.image.of().random_brightness(51)
    with pytest.raises(ps.ConfigError, match="before normalize"):
        ps.image_folder(folder).map(ps.image.decode().normalize().random_brightness(0.1))


def test_arrays_are_accepted_as_images() -> None:
    images = np.random.default_rng(0).integers(0, 256, (6, 12, 10, 3), dtype=np.uint8)
    ds = ps.from_tensor_slices(images).map(ps.image.of().crop(2, 3, 5, 4))
    np.testing.assert_array_equal(ds.sample(4), images[4, 2:7, 3:7])


def test_random_ops_depend_on_the_seed_alone(folder: pathlib.Path) -> None:
    chain = ps.image.decode().random_resized_crop(8, 8).random_flip().color_jitter(0.3, 0.3, 0.3)
    def epoch(threads: int, seed: int) -> np.ndarray:
        ds = ps.image_folder(folder).map(chain.seed(seed)).batch(4)
        return np.concatenate([batch["image"].copy() for batch in ps.Loader(ds, threads=threads)])
    np.testing.assert_array_equal(epoch(0, 1), epoch(2, 1))
    assert (epoch(0, 1) != epoch(0, 2)).any()


def test_a_broken_file_is_named_or_skipped(folder: pathlib.Path) -> None:
    (folder / "a/4.ppm").write_bytes(b"P6 20 30 255\nshort")
    ds = ps.image_folder(folder).map(ps.image.decode().resize(8, 8)).batch(4)
    with pytest.raises(ps.SampleError, match=r"a/4\.ppm"):
        list(ps.Loader(ds))
    loader = ps.Loader(ds, on_error="skip")
    assert sum(len(batch["label"]) for batch in loader) == 9
    assert "a/4.ppm" in str(loader.ledger)


def test_files_by_pattern_and_by_path(folder: pathlib.Path) -> None:
    names = sorted(str(path) for path in folder.glob("*/*.ppm"))
    listed = ps.list_files(str(folder / "**/*.ppm"))
    assert len(names) == 10 and listed.cardinality() == 10
    ds = ps.from_paths(names[:3], [7, 8, 9]).map(ps.image.decode().resize(2, 2))
    assert [int(ds.sample(i)["label"]) for i in range(3)] == [7, 8, 9]
    index = ps.list_images(folder)
    assert index.class_names == ["a", "b"] and len(index) == 10


def test_mixup_mixes_rows_of_a_batch(folder: pathlib.Path) -> None:
    ds = (ps.image_folder(folder).map(ps.image.decode().resize(2, 2).to_float())
          .map(ps.image.one_hot(2)).batch(10).map(ps.image.mixup(1.0)))
    batch = next(iter(ps.Loader(ds)))
    np.testing.assert_allclose(batch["label"].sum(axis=1), 1, atol=1e-6)
    assert ((batch["label"] > 0.01) & (batch["label"] < 0.99)).any()
