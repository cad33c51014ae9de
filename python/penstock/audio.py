"""Audio: an op for `map` that decodes recordings.

    ds = ps.audio_folder("words").map(ps.audio.decode(rate=16_000, frames=16_000)).batch(64)
"""

from __future__ import annotations

import json

from . import _native
from .arguments import choice, flag, seed_of, text, whole, whole_or_none
from .foreign import explained


@explained
def decode(path: str = "audio", *, rate: int | None = None, channels: int | None = 1,
           frames: int | None = None, crop: str = "random", pad: bool = True, seed: int = 0,
           values_max: int = 1 << 28) -> _native.OpCall:
    """An op for `map`: decodes the field `path`, the bytes of a WAV, FLAC, Ogg or AIFF file.

    The result is float32 between -1 and 1: of shape (frames,) for `channels=1`, the mean of all
    channels, and of shape (frames, channels) otherwise; `channels=None` keeps those of the file.
    `rate` resamples. With `frames` each recording becomes that long, after resampling: `crop`
    says which part of a longer one is decoded ("random", "center" or "start"; a random part
    depends on the sample, the epoch and `seed`), and a shorter one is filled with zeros at its
    end, or fails if `pad` is False. Without `frames` recordings keep their lengths. A sample with
    more values than `values_max`, with NaN or infinity, or of a truncated file fails.
    """
    return _native.audio_decode(json.dumps({
        "path": text("decode", "path", path),
        "rate": whole_or_none("decode", "rate", rate, least=1, most=1 << 20) or 0,
        "channels": whole_or_none("decode", "channels", channels, least=1, most=1024) or 0,
        "frames": whole_or_none("decode", "frames", frames, least=1) or 0,
        "crop": choice("decode", "crop", text("decode", "crop", crop),
                       ("random", "center", "start")),
        "pad": flag("decode", "pad", pad), "seed": seed_of("decode", seed),
        "values_max": whole("decode", "values_max", values_max, least=1)}))
