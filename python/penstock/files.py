"""Datasets of files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from . import _native
from .arguments import flag, items, made_by, path, refuse, text, whole, whole_or_none
from .dataset import Dataset
from .errors import ConfigError
from .foreign import explained


Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]


@explained
class FolderIndex:
    """The images of a folder: names, sizes and classes, found without reading the images."""

    def __init__(self, native: _native.FolderIndex) -> None:
        self._native: _native.FolderIndex = made_by("a FolderIndex", native, _native.FolderIndex,
                                                    "ps.list_images(root) makes one")

    def __len__(self) -> int:
        return self._native.files()

    @property
    def class_names(self) -> list[str]:
        """Names of the folders, in the order of the labels; os.fsencode gives their bytes."""
        return [os.fsdecode(name) for name in self._native.class_names()]

    @property
    def left_out(self) -> str:
        """Readable text about the entries of the folder that are not among the images."""
        return self._native.left_out_text()

    def save(self, file: Path) -> None:
        """Writes the index to a file, for the `index` of `list_images` and `image_folder`."""
        self._native.save(path("save", "file", file))

    def check(self) -> None:
        """Lists the folder again; raises an error that names the first file that differs."""
        self._native.check()


class ImageFolder(Dataset):
    """The result of `image_folder`: a dataset with class names."""

    def __init__(self, native: _native.Dataset, index: FolderIndex) -> None:
        super().__init__(native)
        self.index = index

    @property
    def class_names(self) -> list[str]:
        """Names of the folders, in the order of the labels; os.fsencode gives their bytes."""
        return self.index.class_names


@explained
def list_images(root: Path, *, extensions: Iterable[str] = (), follow_links: str = "inside",
                labels: bool = True, index: Path = "") -> FolderIndex:
    """Lists a folder of images: each folder directly in `root` that contains images is a class."""
    return FolderIndex(_native.list_folder(
        path("list_images", "root", root), items("list_images", "extensions", extensions, text),
        text("list_images", "follow_links", follow_links), flag("list_images", "labels", labels),
        path("list_images", "index", index)))


@explained
def image_folder(root: Path | FolderIndex, *, extensions: Iterable[str] = (),
                 follow_links: str = "inside", labels: bool = True, with_path: bool = False,
                 index: Path = "") -> ImageFolder:
    """{"image": the encoded file, "label": int64} for every image, sorted by name.

    The `class_names` of the dataset are the names of the folders, indexed by label.
    """
    with_path = flag("image_folder", "with_path", with_path)
    if not isinstance(root, FolderIndex):
        root = list_images(root, extensions=extensions, follow_links=follow_links, labels=labels,
                           index=index)
    elif (tuple(extensions), follow_links, labels, index) != ((), "inside", True, ""):
        raise ConfigError("image_folder: the folder is listed already, so extensions=, "
                          "follow_links=, labels= and index= have no effect",
                          remedy="pass them to list_images")
    return ImageFolder(_native.image_folder(root._native, with_path), root)


@explained
def from_paths(paths: Iterable[Path], labels: Iterable[int] = ()) -> Dataset:
    """{"image": the encoded file, "label": int64}, or {"image"} if there are no labels."""
    return Dataset(_native.from_paths(
        items("from_paths", "paths", paths, path),
        items("from_paths", "labels", labels, _label)))


def _label(word: str, name: str, value: object) -> int:
    return whole(word, name, value, least=-(2**63), most=2**63 - 1)


@explained
def list_files(pattern: Path, *, hidden: bool = False) -> Dataset:
    """The sorted paths of the files that match; `**` matches any number of folders."""
    return Dataset(_native.list_files(path("list_files", "pattern", pattern),
                                      flag("list_files", "hidden", hidden)))


@explained
def read_file(path: str = "") -> _native.OpCall:
    """An op for `map`: replaces the field `path`, the path of a file, by the bytes of the file."""
    return _native.read_file(text("read_file", "path", path))


@explained
def tokens(pattern: Path, dtype: Any, length: int, stride: int | None = None) -> Dataset:
    """Windows of `length` tokens of files that contain nothing but tokens, such as nanoGPT's .bin.

    `pattern` is a path, or as for `list_files`. Files are mapped, not read: do not change them
    while a loader runs. A window does not cross files; the default stride is `length`.
    """
    if dtype is None:
        raise refuse("tokens", "dtype", dtype, "is not a dtype", "use a name, as in \"uint16\"")
    return Dataset(_native.tokens(
        path("tokens", "pattern", pattern), dtype, whole("tokens", "length", length, least=1),
        whole_or_none("tokens", "stride", stride, least=1) or 0))


@explained
def from_megatron(prefix: Path) -> Dataset:
    """The sequences of `prefix`.bin as Megatron's `prefix`.idx lists them; both are mapped.

    A sequence is a document, unless the documents were split into sentences.
    """
    return Dataset(_native.from_megatron(path("from_megatron", "prefix", prefix)))
