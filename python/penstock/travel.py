"""Pickling functions for worker processes, and their exceptions for the way back."""

from __future__ import annotations

import io
import os
import pickle
import sys
import traceback
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from . import _native
from .errors import ConfigError, SampleError


def _cloudpickle() -> Any:
    try:
        import cloudpickle
    except ImportError:
        return None
    return cloudpickle


class _PlainPickler(pickle.Pickler):
    """Refuses objects of `__main__`, which is a different module in a worker."""

    def reducer_override(self, obj: Any) -> Any:
        if (isinstance(obj, type) or hasattr(obj, "__code__")) and (
                getattr(obj, "__module__", None) == "__main__"):
            raise pickle.PicklingError(
                f"{getattr(obj, '__qualname__', obj)} is defined in __main__, which a worker "
                "process does not run")
        return NotImplemented


def dumps(value: Any) -> bytes:
    cloudpickle = _cloudpickle()
    if cloudpickle is not None:
        data: bytes = cloudpickle.dumps(value)
        return data
    buffer = io.BytesIO()
    _PlainPickler(buffer, pickle.HIGHEST_PROTOCOL).dump(value)
    return buffer.getvalue()


def _named_parts(fn: Any) -> Iterator[tuple[str, Any]]:
    """The objects that a function refers to, with a description of each."""
    code = getattr(fn, "__code__", None)
    if isinstance(code, CodeType):
        for name, cell in zip(code.co_freevars, fn.__closure__ or ()):
            try:
                yield f'"{name}" of the scope around it', cell.cell_contents
            except ValueError:  # not filled yet
                pass
        for name in code.co_names:
            if name in fn.__globals__:
                yield f'the global "{name}"', fn.__globals__[name]
        yield from ((f"a default, {value!r}", value) for value in fn.__defaults__ or ())
    if hasattr(fn, "func") and hasattr(fn, "args"):  # functools.partial
        yield "the function of the partial", fn.func
        yield from ((f"its argument {i}", value) for i, value in enumerate(fn.args))
        yield from ((f'its argument "{name}"', value) for name, value in fn.keywords.items())
    owner = getattr(fn, "__self__", None) or fn
    for name, value in getattr(owner, "__dict__", {}).items():
        if not name.startswith("__"):
            yield f'the attribute "{name}"', value


def _travels(value: Any) -> bool:
    try:
        dumps(value)
    except Exception:
        return False
    return True


def packed(title: str, fn: Callable[..., Any]) -> bytes:
    """The pickled function. Raises ConfigError naming the part that cannot be pickled."""
    try:
        return dumps(fn)
    except Exception as error:
        culprit = next((f": {name} ({type(value).__name__})" for name, value in _named_parts(fn)
                        if not _travels(value)), "")
        remedy = ("create it inside the function, or leave out workers= to run it in threads"
                  if _cloudpickle() else
                  "pip install cloudpickle, which pickles lambdas, closures and functions of the "
                  "main program; or put the function in a module; or leave out workers=")
        raise ConfigError(
            f"{title}: the function cannot be sent to a worker process{culprit}: {error}",
            remedy=remedy) from error


def command() -> list[str]:
    """The command that starts a worker."""
    from multiprocessing import spawn, util
    executable = spawn.get_executable()
    if not executable:
        raise ConfigError("workers: there is no Python interpreter to start (sys.executable is "
                          "empty)", remedy="set it with multiprocessing.set_executable")
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "worker_main.py")
    return [os.fsdecode(executable), *util._args_from_interpreter_flags(), program]


def setup_of(title: str, fn: Callable[..., Any], keyed: bool = False,
             random: bool = False) -> bytes:
    """Everything that a worker needs to start."""
    return pickle.dumps({
        "path": [path or os.getcwd() for path in sys.path], "argv": sys.argv,
        "function": packed(title, fn), "keyed": keyed, "random": random,
        "title": title})


# Exceptions

class WorkerTraceback(Exception):
    """The traceback of a worker process, as text: frames cannot be pickled."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text}"""'


def _made_again(make: Any, args: tuple[Any, ...], state: Any = None) -> BaseException:
    """Unpickles an exception without calling its class's own __init__, which may need arguments
    other than those in `args`."""
    if isinstance(make, type) and issubclass(make, BaseException):
        error = make.__new__(make, *args)
        builtin = next(base for base in make.__mro__ if base.__module__ == "builtins")
        builtin.__init__(error, *args)
    else:
        error = make(*args)
    if state:
        error.__setstate__(state)
    return error


def sent(error: BaseException) -> bytes:
    """Called in a worker."""
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    name, words = type(error).__name__, str(error)
    try:
        parts = dumps(error.__reduce__())
        _made_again(*pickle.loads(parts))
    except Exception as why:
        parts, name = b"", f"{name}, which cannot be pickled ({why})"
    return pickle.dumps((parts, name, words, text, _native.error_number(error)))


def received(data: bytes) -> tuple[BaseException, int]:
    """Called in the parent: the exception, with the worker's traceback as its cause, and its errno,
    or 0 if it has none."""
    parts, name, words, text, number = pickle.loads(data)
    error: BaseException
    try:
        if not parts:
            raise TypeError(name)
        error = _made_again(*pickle.loads(parts))
    except Exception as why:
        error = SampleError(f"{name}: {words}" if not parts else f"{name}: {words} ({why})")
    error.__cause__ = WorkerTraceback(text)
    return error, number
