"""What an epoch did, why it was as fast as it was, and what would make it faster."""

from __future__ import annotations

import os
from typing import Any

from . import _native
from .arguments import path
from .errors import ConfigError
from .foreign import explained


@explained
class Report(dict[str, Any]):
    """A dict of an epoch's figures: verdict, cause, advice, times, ops, the slowest samples and
    more. As text the verdict first, then tables; `save` writes a page."""

    def __init__(self, native: Any) -> None:
        if not isinstance(native, _native.Report):
            raise ConfigError(f"a Report is not made from {type(native).__name__}",
                              remedy="loader.report() returns one")
        super().__init__(native.fields())
        self._native: _native.Report = native

    @staticmethod
    def read(trace: str | os.PathLike[str]) -> Report:
        """Reads a trace that `save("run.json")` wrote, also one of a run that was killed."""
        return Report(_native.read_report(path("Report.read", "trace", trace)))

    @property
    def verdict(self) -> str:
        """What limited the epoch, in a sentence."""
        return str(self["verdict"])

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes a page that any browser opens (`run.html`), or a trace for Chrome, Perfetto and
        `penstock report` (`run.json`)."""
        self._native.save(path("Report.save", "file", file))

    def compare(self, before: Report) -> str:
        """What changed since an earlier report, in words."""
        if not isinstance(before, Report):
            raise ConfigError(f"compare: {type(before).__name__} is not a Report",
                              remedy="pass what loader.report() returned earlier")
        return self._native.compare(before._native)

    def __str__(self) -> str:
        return str(self._native)

    def _repr_pretty_(self, printer: Any, _: bool) -> None:  # in notebooks
        printer.text(str(self))
