"""The errors penstock raises. Each says what happened, where and, where there is one, the remedy.

A function of yours that raises is another matter: its own exception comes back, with its type and
traceback, and a note that names the sample, the op and the step.
"""

from __future__ import annotations

from typing import Any


class Error(Exception):
    """Catch this for all of penstock's own errors."""

    def __init__(self, message: str, where: dict[str, Any] | None = None, place: str = "",
                 remedy: str = "") -> None:
        text = message
        if place:
            text += f" [{place}]"
        if remedy:
            text += f" -> {remedy}"
        super().__init__(text)
        self.message = message
        self.where = where or {}
        self.remedy = remedy


class ConfigError(Error, ValueError):
    """A wrong set-up, found before anything runs."""


class StateError(Error, ValueError):
    """A state that cannot be restored: another dataset, truncated, garbled or of a newer format."""


class SampleError(Error, RuntimeError):
    """A sample that could not be made, for a reason that was not an exception of yours."""


class ResourceError(Error, RuntimeError):
    """Memory, threads or descriptors ran out."""


class IoError(Error, OSError):
    """A file could not be read or written."""


class CancelledError(Error, RuntimeError):
    """The loader was stopped while this call waited."""


class InternalError(Error, RuntimeError):
    """A broken promise of penstock's own. Please report it."""
