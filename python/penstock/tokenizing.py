"""Tokenizers as functions of samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import ConfigError
from .spec import Field, Spec

IDS = Field("int64", (None,))


class Tokenize:
    """Replaces a text by its token ids. A class, so that worker processes can receive it."""

    def __init__(self, tokenizer: Any, field: str, to: str) -> None:
        self.tokenizer = tokenizer
        self.field = field
        self.to = to
        self.__name__ = f"tokenize({type(tokenizer).__name__})"

    def __call__(self, *parts: Any) -> Any:
        if not self.field:
            if len(parts) != 1 or not isinstance(parts[0], (str, bytes)):
                raise TypeError("tokenize: the samples are not texts; name the field of the text")
            return self.ids(parts[0])
        (sample,) = parts
        others = {name: value for name, value in sample.items() if name != self.field}
        return others | {self.to or self.field: self.ids(sample[self.field])}

    def ids(self, text: Any) -> Any:
        encode = getattr(self.tokenizer, "encode", self.tokenizer)
        made = encode(text)
        made = getattr(made, "ids", made)  # an Encoding of Hugging Face tokenizers
        if isinstance(made, dict) or hasattr(made, "input_ids"):
            made = made["input_ids"]
        ids = np.asarray(made)
        if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
            raise TypeError(f"tokenize: the tokenizer returned {type(made).__name__} of "
                            f"{ids.dtype}{list(ids.shape)}, not a list of whole numbers")
        return ids.astype(np.int64)


def spec_after(spec: Spec, field: str, to: str) -> Spec:
    """The spec of tokenized samples; None if that of the texts is unknown."""
    if not field:
        return IDS
    if spec is None:
        return None
    if not isinstance(spec, dict) or field not in spec:
        raise ConfigError(f"tokenize: the samples have no field {field!r}")
    return {name: each for name, each in spec.items() if name != field} | {to or field: IDS}


def check_tokenizer(tokenizer: Any) -> None:
    if not callable(tokenizer) and not callable(getattr(tokenizer, "encode", None)):
        raise ConfigError(f"tokenize: {type(tokenizer).__name__} is not a tokenizer",
                          remedy="pass a function of a text, or an object with encode(text)")
