"""The errors that penstock raises. Each says what happened, where and, if there is one, the remedy.

An exception in one of your functions is raised unchanged, with its type and traceback, and a note
that names the sample, the op and the step.
"""

from __future__ import annotations

import re
from typing import Any


# Translates the C++ names in the engine's messages to Python.
_PYTHON = (
    (r"\{\.(\w+) = ([^{}]+)\}", r"\1=\2"),  # options: shuffle({.window = n}), {.name = ...}
    (r"\.(\w+) = (true|false)", r"\1=\2"),
    (r"=true\b", "=True"),
    (r"=false\b", "=False"),
    (r"\bimage::", "ps.image."),
    (r"Seed::random\(\)", 'seed="random"'),
    (r"ElementSpec::single\(dtype\)", 'ps.Field("float32")'),
    (r"train::MultiWorkerMirroredStrategy, or give it a coordinator",
     "ps.Loader in each process, which takes its share by the launcher's rank"),
    (r"declare \.spec\b", "declare spec="),
    (r"that \.spec declares", "that spec= declares"),
    (r"with that size left open", "with None for that size"),
    (r"an Rng is keyed", "rng() is keyed"),
    (r"take no Rng", "not draw random numbers"),
    (r"next\(\) returns nothing", "the loop ends"),
    (r"use ragged\(path\) or row\(i\)", "use batch[path] or batch.row(i)"),
)


class Error(Exception):
    """The base class of all of penstock's errors."""

    def __init__(self, message: str, where: dict[str, Any] | None = None, place: str = "",
                 remedy: str = "") -> None:
        for words, python in _PYTHON:
            message, remedy = re.sub(words, python, message), re.sub(words, python, remedy)
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
    """A mistake in the set-up, found before anything runs."""


class ArgumentError(ConfigError, TypeError):
    """A call that does not match the signature: a ConfigError that is also a TypeError."""


class MissingNameError(ConfigError, AttributeError):
    """A name of another library: a ConfigError that is also an AttributeError."""


class StateError(Error, ValueError):
    """A state that cannot be loaded: of another dataset, truncated, garbled, of a newer format."""


class SampleError(Error, RuntimeError):
    """A sample that failed for a reason other than an exception in one of your functions."""


class ResourceError(Error, RuntimeError):
    """Memory, threads or descriptors ran out."""


class IoError(Error, OSError):
    """A file could not be read or written."""


class CancelledError(Error, RuntimeError):
    """The loader was stopped while this call waited."""


class InternalError(Error, RuntimeError):
    """A bug in penstock. Please report it."""
