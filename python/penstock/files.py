"""Datasets of files."""

from __future__ import annotations

import os
from collections.abc import Iterable

from . import _native
from .dataset import Dataset


class FolderIndex:
    """The images of a folder: names, sizes and classes, found without reading the images."""

    def __init__(self, native: _native.FolderIndex) -> None:
        self._native = native

    def __len__(self) -> int:
        return self._native.files()

    @property
    def class_names(self) -> list[str]:
        return self._native.class_names()

    @property
    def left_out(self) -> str:
        """What is in the folder and not among the images, in words."""
        return self._native.left_out_text()

    def save(self, file: str | os.PathLike[str]) -> None:
        self._native.save(os.fspath(file))

    def check(self) -> None:
        """Lists the folder again; an error names the first file that differs."""
        self._native.check()


def list_images(root: str | os.PathLike[str], *, extensions: Iterable[str] = (),
                follow_links: str = "inside", labels: bool = True,
                index: str | os.PathLike[str] = "") -> FolderIndex:
    """Lists a folder of images: each folder directly in `root` that holds images is a class."""
    return FolderIndex(_native.list_folder(os.fspath(root), list(extensions), follow_links, labels,
                                           os.fspath(index)))


def image_folder(root: str | os.PathLike[str] | FolderIndex, *, extensions: Iterable[str] = (),
                 follow_links: str = "inside", labels: bool = True, with_path: bool = False,
                 index: str | os.PathLike[str] = "") -> Dataset:
    """{"image": the encoded file, "label": int64} of every image, sorted by name."""
    if not isinstance(root, FolderIndex):
        root = list_images(root, extensions=extensions, follow_links=follow_links, labels=labels,
                           index=index)
    return Dataset(_native.image_folder(root._native, with_path))


def from_paths(paths: Iterable[str | os.PathLike[str]], labels: Iterable[int] = ()) -> Dataset:
    """{"image": the encoded file, "label": int64}, or without labels {"image"}."""
    return Dataset(_native.from_paths([os.fspath(path) for path in paths], list(labels)))


def list_files(pattern: str, *, hidden: bool = False) -> Dataset:
    """The paths of the files that match, sorted; `**` for any number of folders."""
    return Dataset(_native.list_files(pattern, hidden))


def read_file(path: str = "") -> _native.OpCall:
    """Reads the file whose path the field `path` holds, and puts its bytes in its place."""
    return _native.read_file(path)
