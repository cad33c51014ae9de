"""What this machine allows, what penstock uses of it, and what is wrong with it."""

from __future__ import annotations

import json
import os
import platform
import sys
from typing import Any

from . import _native
from .arguments import path
from .foreign import explained

_PACKAGES = ("numpy", "torch", "keras", "tensorflow", "jax", "pyarrow")


class Examination(dict[str, Any]):
    """A dict of `facts` (a dict of texts) and `problems` (dicts of what and remedy); as text, a
    line for each."""

    def __str__(self) -> str:
        width = max(len(name) for name in self["facts"])
        lines = [f"{name:<{width}}  {value}" for name, value in self["facts"].items()]
        lines.append("")
        for problem in self["problems"]:
            lines += [f"! {problem['what']}", f"  -> {problem['remedy']}"]
        return "\n".join(lines if self["problems"] else [*lines, "Nothing is wrong."])

    def __repr__(self) -> str:
        return str(self)


def _versions() -> dict[str, str]:
    import importlib.metadata  # slow

    found = {"Python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    # Only a torch that is imported already: importing it takes seconds.
    torch = sys.modules.get("torch")
    if torch is not None and "torch" in found:
        cuda = torch.version.cuda
        devices = torch.cuda.device_count() if cuda else 0
        found["torch"] += (f", CUDA {cuda}, {devices} GPU{'' if devices == 1 else 's'}" if cuda
                           else ", without CUDA")
    return found


def _doctor(data: str | os.PathLike[str] = "") -> Examination:
    """Examines this machine: cores, memory, limits of the container, versions, what is wrong.

    data: a folder with training data, whose disk is measured by reading some of its files.
    """
    native = json.loads(_native.examine_machine(path("doctor", "data", data)))
    facts = {fact["name"]: fact["value"] for fact in native["facts"]}
    found = Examination(facts={**facts, **_versions()}, problems=native["problems"])
    torch = sys.modules.get("torch")
    if torch is not None and torch.version.cuda and not torch.cuda.is_available():
        found["problems"].append({
            "what": "this torch has CUDA, but finds no GPU",
            "remedy": "check the driver with nvidia-smi, and CUDA_VISIBLE_DEVICES"})
    return found


doctor = explained(_doctor, "doctor")
