"""Names of files and folders of any encoding."""

import os
from pathlib import Path

import numpy as np
import pytest
from article import png

import penstock as ps

ODD = os.fsdecode(b"caf\xe9")  # Latin-1, which is not UTF-8


def folder(tmp_path, *classes):
    root = tmp_path / ODD
    for name in classes:
        os.makedirs(root / name)
        png(Path(root / name / f"{ODD}.png"), np.zeros((4, 4, 3), np.uint8))
    return root


@pytest.mark.parametrize("form", [str, os.fsencode, Path])
def test_a_root_that_is_not_utf_8_is_listed(tmp_path, form):
    root = folder(tmp_path, "a")
    ds = ps.image_folder(form(str(root)))
    assert len(ds) == 1 and len(ps.list_images(form(str(root)))) == 1
    assert ds.map(ps.image.decode()).sample(0)["image"].shape == (4, 4, 3)
    assert "caf" in ds.describe() and "caf" in ps.Loader(ds.batch(1)).plan.explain()


def test_paths_that_are_not_utf_8_equal_os_fsdecode(tmp_path):
    root = folder(tmp_path, "a")
    batch = next(iter(ps.Loader(ps.image_folder(root, with_path=True).batch(1))))
    (path,) = batch["path"]
    assert path.endswith(f"{ODD}.png")
    assert ps.image_folder(root, with_path=True).sample(0)["path"] == path
    full = os.path.join(root, path)
    assert os.path.exists(full)
    (file,) = root.glob("a/*")
    for given in (str(file), os.fsencode(file), file):
        assert ps.from_paths([given]).map(ps.image.decode()).sample(0)["image"].shape == (4, 4, 3)
    assert list(ps.list_files(f"{root}/a/*")) == [str(file)]
    assert list(ps.list_files(os.fsencode(f"{root}/a/*"))) == [str(file)]
    assert list(ps.from_tensor_slices([str(file)])) == [str(file)]
    read = ps.from_tensor_slices({"f": [str(file)]}).map(ps.read_file("f"))
    assert next(iter(read))["f"] == file.read_bytes()


def test_a_path_goes_to_a_worker_and_back(tmp_path):
    ds = ps.from_tensor_slices([ODD, "b"]).map(lambda name: name + "!", workers=1)
    assert list(ds) == [ODD + "!", "b!"]


def test_an_error_names_a_file_that_is_not_utf_8(tmp_path):
    root = folder(tmp_path, "a")
    (file,) = root.glob("a/*")
    file.write_bytes(b"no picture")
    ds = ps.image_folder(root).map(ps.image.decode().resize(4, 4)).batch(1)
    with pytest.raises(ps.SampleError, match="caf") as raised:
        list(ps.Loader(ds))
    assert os.path.samefile(raised.value.where["file"], file) or ODD in raised.value.where["file"]
    log = tmp_path / f"{ODD}.jsonl"
    loader = ps.Loader(ds, on_error="skip", skip_limit=5, ledger_file=log)
    list(loader)
    assert "caf" in loader.ledger[0]["reason"] + str(loader.ledger) and log.exists()


def test_class_names_are_the_names_of_the_folders(tmp_path):
    names = ["back\\slash", "new\nline", ODD, "plain"]
    root = folder(tmp_path, *names)
    ds = ps.image_folder(root)
    assert sorted(ds.class_names) == sorted(names)
    assert ds.class_names == ps.list_images(root).class_names == ds.index.class_names
    labels = {name: number for number, name in enumerate(ds.class_names)}
    for sample in ps.image_folder(root, with_path=True):
        assert labels[sample["path"].split("/")[-2]] == sample["label"]
    with pytest.raises(AttributeError, match=r"ps\.image_folder\(\.\.\.\)\.class_names"):
        ds.shuffle().class_names


def test_an_index_in_a_file_that_is_not_utf_8(tmp_path):
    root = folder(tmp_path, "a")
    index = tmp_path / f"{ODD}.index"
    ps.list_images(root).save(index)
    assert len(ps.image_folder(root, index=index)) == 1


def test_options_together_with_a_listed_folder_raise(tmp_path):
    listed = ps.list_images(folder(tmp_path, "a"))
    with pytest.raises(ps.ConfigError, match="listed already.*pass them to list_images"):
        ps.image_folder(listed, labels=False)
    assert len(ps.image_folder(listed, with_path=True)) == 1


def test_a_folder_without_classes_raises_with_a_python_remedy(tmp_path):
    png(tmp_path / "a.png", np.zeros((4, 4, 3), np.uint8))
    with pytest.raises(ps.ConfigError, match="set the option labels to false"):
        ps.image_folder(tmp_path)
