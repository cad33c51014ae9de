"""Datasets of files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from . import _native
from .arguments import choice, flag, items, made_by, path, refuse, text, whole, whole_or_none
from .dataset import Dataset
from .errors import ConfigError
from .foreign import explained


Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]


@explained
class FolderIndex:
    """The files of a folder: names, sizes and classes, found without reading the files."""

    def __init__(self, native: _native.FolderIndex) -> None:
        self._native: _native.FolderIndex = made_by("a FolderIndex", native, _native.FolderIndex,
                                                    "ps.list_images(root) makes one, "
                                                    "and ps.list_audio(root)")

    def __len__(self) -> int:
        return self._native.files()

    @property
    def class_names(self) -> list[str]:
        """Names of the folders, in the order of the labels; os.fsencode gives their bytes."""
        return [os.fsdecode(name) for name in self._native.class_names()]

    @property
    def left_out(self) -> str:
        """Readable text about the entries of the folder that are not among the files."""
        return self._native.left_out_text()

    def save(self, file: Path) -> None:
        """Writes the index to a file, for the `index` of the functions that list folders."""
        self._native.save(path("save", "file", file))

    def check(self) -> None:
        """Lists the folder again; raises an error that names the first file that differs."""
        self._native.check()


class _FileFolder(Dataset):

    def __init__(self, native: _native.Dataset, index: FolderIndex) -> None:
        super().__init__(native)
        self.index = index

    @property
    def class_names(self) -> list[str]:
        """Names of the folders, in the order of the labels; os.fsencode gives their bytes."""
        return self.index.class_names


class ImageFolder(_FileFolder):
    """The result of `image_folder`: a dataset with class names."""


class AudioFolder(_FileFolder):
    """The result of `audio_folder`: a dataset with class names."""


def _listed(word: str, field: str, root: Path, extensions: Iterable[str], follow_links: str,
            labels: bool, index: Path) -> FolderIndex:
    links = choice(word, "follow_links", text(word, "follow_links", follow_links),
                   ("never", "inside", "anywhere"))
    return FolderIndex(_native.list_folder(
        field, path(word, "root", root), items(word, "extensions", extensions, text), links or "",
        flag(word, "labels", labels), path(word, "index", index)))


def _check_unused(word: str, list_word: str, *unused: Any) -> None:
    """For a folder that is listed already: the arguments of the listing have their defaults."""
    extensions, follow_links, labels, index = unused
    if (tuple(extensions), follow_links, labels, index) != ((), "inside", True, ""):
        raise ConfigError(f"{word}: the folder is listed already, so extensions=, "
                          "follow_links=, labels= and index= have no effect",
                          remedy=f"pass them to {list_word}")


@explained
def list_images(root: Path, *, extensions: Iterable[str] = (), follow_links: str = "inside",
                labels: bool = True, index: Path = "") -> FolderIndex:
    """Lists a folder of images: each folder directly in `root` that contains images is a class."""
    return _listed("list_images", "image", root, extensions, follow_links, labels, index)


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
    else:
        _check_unused("image_folder", "list_images", extensions, follow_links, labels, index)
    return ImageFolder(_native.file_folder("image", root._native, with_path), root)


@explained
def from_paths(paths: Iterable[Path], labels: Iterable[int] = ()) -> Dataset:
    """{"image": the encoded file, "label": int64}, or {"image"} if there are no labels."""
    return Dataset(_native.files(
        "image", items("from_paths", "paths", paths, path),
        items("from_paths", "labels", labels, _label)))


@explained
def list_audio(root: Path, *, extensions: Iterable[str] = (), follow_links: str = "inside",
               labels: bool = True, index: Path = "") -> FolderIndex:
    """Lists a folder of recordings: each folder in `root` that contains recordings is a class.

    The default extensions are wav, flac, ogg, oga, opus, aif and aiff.
    """
    return _listed("list_audio", "audio", root, extensions, follow_links, labels, index)


@explained
def audio_folder(root: Path | FolderIndex, *, extensions: Iterable[str] = (),
                 follow_links: str = "inside", labels: bool = True, with_path: bool = False,
                 index: Path = "") -> AudioFolder:
    """{"audio": the encoded file, "label": int64} for every recording, sorted by name.

    `ps.audio.decode` decodes them. The `class_names` of the dataset are the names of the folders,
    indexed by label.
    """
    with_path = flag("audio_folder", "with_path", with_path)
    if not isinstance(root, FolderIndex):
        root = list_audio(root, extensions=extensions, follow_links=follow_links, labels=labels,
                          index=index)
    else:
        _check_unused("audio_folder", "list_audio", extensions, follow_links, labels, index)
    return AudioFolder(_native.file_folder("audio", root._native, with_path), root)


@explained
def audio_files(paths: Iterable[Path], labels: Iterable[int] | None = None) -> Dataset:
    """{"audio": the encoded file, "label": int64}, or {"audio"} if there are no labels."""
    return Dataset(_native.files(
        "audio", items("audio_files", "paths", paths, path),
        [] if labels is None else items("audio_files", "labels", labels, _label)))


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
def load(folder: Path) -> Dataset:
    """The samples that `Dataset.save` wrote to `folder`, or those of a complete cache there."""
    return Dataset(_native.load(path("load", "folder", folder)))


@explained
def from_megatron(prefix: Path) -> Dataset:
    """The sequences of `prefix`.bin as Megatron's `prefix`.idx lists them; both are mapped.

    A sequence is a document, unless the documents were split into sentences.
    """
    return Dataset(_native.from_megatron(path("from_megatron", "prefix", prefix)))
