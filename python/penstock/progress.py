"""A progress bar with what matters for input: the rate, and how long training waits."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any, TextIO

from .arguments import flag
from .errors import ConfigError
from .loader import Loader
from .strategy import Feed

_WIDTH = 24
_EVERY = 0.1  # seconds


def _short(number: float) -> str:
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if number >= limit:
            return f"{number / (limit if unit != 'k' else 1e3):.1f}{unit}"
    return f"{number:.0f}" if number >= 10 else f"{number:.1f}"


def _clock(seconds: float) -> str:
    whole = int(seconds)
    if whole >= 3600:
        return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
    return f"{whole // 60}:{whole % 60:02}"


class _Bar:
    """One line of a terminal, drawn at most ten times a second."""

    def __init__(self, stream: TextIO, steps: int | None) -> None:
        self._stream, self._steps = stream, steps
        self._began = self._drawn = time.monotonic()
        self._waited = 0.0
        self._done = self._rows = 0
        self._width = 0

    def waited(self, seconds: float) -> None:
        self._waited += seconds

    def advance(self, rows: int) -> None:
        self._done += 1
        self._rows += rows
        now = time.monotonic()
        if now - self._drawn >= _EVERY:
            self._drawn = now
            self._draw(self.text(now))

    def text(self, now: float) -> str:
        took = max(now - self._began, 1e-9)
        part = f"{_short(self._rows / took)} samples/s, waiting {100 * self._waited / took:.0f} %"
        if self._steps is None:
            return f"step {self._done}, {part}, {_clock(took)}"
        full = round(_WIDTH * self._done / max(1, self._steps))
        left = took * (self._steps - self._done) / max(1, self._done)
        return (f"[{'#' * full}{'.' * (_WIDTH - full)}] {self._done}/{self._steps}, {part}, "
                f"{_clock(left)} left")

    def _draw(self, text: str) -> None:
        self._stream.write("\r" + text.ljust(self._width))
        self._stream.flush()
        self._width = len(text)

    def end(self) -> None:
        self._draw(self.text(time.monotonic()))
        self._stream.write("\n")
        self._stream.flush()


def progress(loader: Any, *, show: bool | None = None) -> Iterator[Any]:
    """Yields what one `for` over the loader or feed yields, and shows a bar on stderr: the rate,
    how much of the time training waits for input, and the time left.

    show: None shows it in terminals and notebooks only.
    """
    if not isinstance(loader, (Loader, Feed)):
        raise ConfigError(f"progress: {type(loader).__name__} is no Loader",
                          remedy="write: for batch in ps.progress(loader)")
    stream = sys.stderr
    if show is not None:
        flag("progress", "show", show)
    shown = (stream.isatty() or "ipykernel" in sys.modules) if show is None else show
    return _shown(loader, stream) if shown else iter(loader)


def _shown(loader: Any, stream: TextIO) -> Iterator[Any]:
    try:
        steps: int | None = len(loader)
    except TypeError:
        steps = None
    bar = _Bar(stream, steps)
    batches = iter(loader)
    try:
        while True:
            asked = time.monotonic()
            try:
                batch = next(batches)
            except StopIteration:
                return
            bar.waited(time.monotonic() - asked)
            yield batch
            bar.advance(len(batch) if hasattr(batch, "__len__") else batch.valid_count)
    finally:
        bar.end()
