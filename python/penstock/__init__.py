"""penstock: a data loader for training on several GPUs, processes or machines.

    import penstock as ps
    ds = ps.from_tensor_slices({"x": x, "id": ids}).shuffle(seed=7).map(fn).batch(16)
    for batch in ps.Loader(ds):     # each `for` is one epoch; the next one is reshuffled
        batch["x"]                  # a NumPy view; batch.torch() for torch tensors
"""

import atexit as _atexit
import importlib as _importlib
import threading as _threading  # noqa: F401  the first thread to import it counts as the main one
import typing as _typing

from . import _native, audio, image
from .arrow_files import from_arrow_files, from_parquet
from .dataset import INFINITE, UNKNOWN, Dataset
from .errors import (
    CancelledError,
    ConfigError,
    Error,
    InternalError,
    IoError,
    ResourceError,
    SampleError,
    StateError,
)
from .files import (
    AudioFolder,
    FolderIndex,
    ImageFolder,
    audio_files,
    audio_folder,
    from_megatron,
    from_paths,
    image_folder,
    list_audio,
    list_files,
    list_images,
    load,
    read_file,
    tokens,
)
from .foreign import name_is_missing as _name_is_missing
from .loader import Batch, Ledger, Loader, Plan
from .randomness import rng
from .ragged import Ragged
from .record_files import (
    Feature,
    WrittenRecords,
    from_csv,
    from_jsonl,
    from_litdata,
    from_mds,
    from_npy,
    from_records,
    from_tar,
    from_text,
    from_tfrecord,
    write_records,
)
from .doctor import doctor
from .progress import progress
from .report import Report
from .sequence import Sequence, from_sequence
from .sources import (
    cast,
    from_generator,
    from_index,
    from_ragged,
    from_tensor_slices,
    from_tensors,
    from_windows,
    range,
    zip,
)
from .spec import Field
from .strategy import (
    Counted,
    Feed,
    MirroredStrategy,
    OneDeviceStrategy,
    PerReplica,
    Replica,
    Step,
    Strategy,
    get_strategy,
    replica_context,
)
from .tables import from_arrow

if _typing.TYPE_CHECKING:
    from . import keras, torch

__version__: str = _native.version
__all__ = [
    "INFINITE", "UNKNOWN", "AudioFolder", "Batch", "CancelledError", "ConfigError", "Counted",
    "Dataset", "Error", "Feature", "Feed", "Field", "FolderIndex", "ImageFolder", "InternalError",
    "IoError", "Ledger", "Loader", "MirroredStrategy", "OneDeviceStrategy", "PerReplica", "Plan",
    "Ragged", "Replica", "Report", "ResourceError", "SampleError", "Sequence", "StateError", "Step",
    "Strategy", "WrittenRecords", "audio", "audio_files", "audio_folder", "cast", "doctor",
    "from_arrow", "from_arrow_files", "from_csv", "from_generator", "from_index", "from_jsonl",
    "from_litdata", "from_mds", "from_megatron", "from_npy", "from_parquet", "from_paths",
    "from_ragged", "from_records", "from_sequence", "from_tar", "from_tensor_slices",
    "from_tensors", "from_text", "from_tfrecord", "from_windows", "get_strategy", "image",
    "image_folder", "list_audio", "list_files", "list_images", "load", "progress", "range",
    "read_file", "replica_context", "rng", "tokens", "write_records", "zip",
]


def __getattr__(name: str) -> _typing.Any:
    # Their libraries take seconds to import, so they are imported on first use.
    if name in ("keras", "torch"):
        return _importlib.import_module(f".{name}", __name__)
    raise _name_is_missing(name)


# Engine threads call Python functions: they must end before the interpreter does.
_atexit.register(_native.end_interpreter)
