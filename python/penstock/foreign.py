"""Arguments and names of tf.data, torch, Keras, Grain and WebDataset that penstock does not have,
and what to write instead. Using one raises an error with that text."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from .errors import ArgumentError, MissingNameError

T = TypeVar("T")

_THREADS = ("leave it out: functions run in parallel in the loader's threads; map(fn, workers=n) "
            "runs Python code in n processes, Loader(threads=n) sets a limit")
_ORDER = "leave it out: the order is the same with any number of threads"
_WORKERS = ("leave it out: a loader works in threads; for Python code that holds the GIL use "
            "ps.range(len(data)).map(data.__getitem__, workers=n)")
_SAMPLER = ("there are no samplers yet: for a custom order map over your indices, "
            "ps.from_tensor_slices(indices).map(data.__getitem__); ps.torch.BatchSampler plans for "
            "a torch DataLoader")
_PINNED = "there is no pinned memory yet: copy with batch.torch() and .to(device)"
_COLLATE = "batch(n, collate_fn=...) takes it"
_BATCH = "batch is a verb of the dataset: ps.Loader(dataset.batch(n))"
_DROP = 'use tail="drop"; by default the last batch is shorter and no sample is lost'
_SEED = "random numbers depend on the seed and the sample: shuffle(seed=...), map(seed=...)"
_RANK = "use world= (the number of processes) and rank="
_BUFFER = ("leave the number out: shuffle() permutes all of the data and needs no buffer; "
           "shuffle(window=n) is for streams")
_AHEAD = "leave it out: a loader prefetches by itself, within Loader(lookahead_bytes=...)"
_PLAIN = "leave it out: rows are stored as they are"
_EPOCHS = "each `for` over a loader is one epoch; repeat(n) repeats the data within an epoch"

# By function, then by argument.
ARGUMENTS: dict[str, dict[str, str]] = {
    "*": {  # any function
        "num_parallel_calls": _THREADS, "deterministic": _ORDER, "num_workers": _WORKERS,
        "num_threads": _THREADS, "parallelism": _THREADS, "prefetch_buffer_size": _AHEAD,
        "output_signature": "use spec=, as in spec=ps.Field(\"float32\", (3,))",
        "output_types": "use spec=, as in spec=ps.Field(\"float32\", (3,))",
        "output_shapes": "use spec=, as in spec=ps.Field(\"float32\", (3,))",
        "drop_last": _DROP,
    },
    "shuffle": {
        "buffer_size": _BUFFER, "buffer": _BUFFER, "bufsize": _BUFFER,
        "reshuffle_each_iteration": "use reshuffle_each_epoch=",
        "generator": "use seed=, a number or \"random\"",
    },
    "batch": {
        "batch_size": "use size=, or batch(32)",
        "padding": "use padded_batch(n), which pads to the longest row",
        "padded_shapes": "use padded_batch(n), which pads to the longest row",
    },
    "padded_batch": {
        "batch_size": "use size=, or padded_batch(32)",
        "padded_shapes": "use length= for a fixed length; rows are padded to the longest otherwise",
        "padding_values": "use values=, a number or a dict from fields to numbers",
    },
    "interleave": {"cycle_length": "use cycle=", "block_length": "use block=",
                   "map_func": "use fn="},
    "map": {"map_func": "use fn=", "input_columns": "the function gets the whole sample",
            "batched": "use map_batch(fn)", "num_proc": "use workers=", "transform": "use fn="},
    "flat_map": {"map_func": "use fn="},
    "filter": {"keep_in_memory": "put cache() before filter", "fn": "use predicate="},
    "prefetch": {"buffer_size": _AHEAD},
    "repeat": {"num_epochs": "use count=", "seed": "shuffle(seed=) sets the order"},
    "cache": {"filename": "use folder=, or cache(\"folder\")",
              "in_memory": "leave it out: without a folder, a cache is in memory"},
    "save": {"path": "use folder=, or save(\"folder\")",
             "shard_func": "use files=, the number of files", "compression": _PLAIN,
             "checkpoint_args": "leave it out: a save that was killed goes on where it was"},
    "snapshot": {"path": "use folder=, or snapshot(\"folder\")", "compression": _PLAIN,
                 "reader_func": "leave it out: the samples are indexed, and can be shuffled",
                 "shard_func": "leave it out: every process writes a file of its own"},
    "load": {"path": "use folder=, or load(\"folder\")", "compression": _PLAIN,
             "element_spec": "leave it out: the folder says what the samples are",
             "reader_func": "leave it out: the samples are indexed, and can be shuffled"},
    "enumerate": {"start": "it counts from 0: .enumerate().map(lambda i, x: (i + start, x))"},
    "shard": {"num_shards": "use count=", "num_replicas": "use count="},
    "take": {"num": "use count="},
    "skip": {"num": "use count="},
    "split": {"lengths": "use fraction=, the size of the first part",
              "test_size": "use fraction=, the size of the first part",
              "train_size": "use fraction=", "generator": "use seed="},
    "from_generator": {"args": "bind the arguments: from_generator(lambda: numbers(args))",
                       "generator": "use factory=, the function that makes the iterator"},
    "from_tensor_slices": {"tensors": "pass the arrays without a name"},
    "list_files": {"file_pattern": "use pattern=",
                   "shuffle": "leave it out and call shuffle(): the files are sorted",
                   "seed": "leave it out and call shuffle(seed=): the files are sorted"},
    "image_folder": {
        "directory": "use root=", "transform": "map(ps.image.decode()...) after it",
        "image_size": "map(ps.image.decode().resize(height, width)) after it",
        "batch_size": "call batch(n) after map",
        "class_names": "classes are the folders in order of name; .class_names lists them",
        "label_mode": "labels are numbers: map(ps.image.one_hot(classes)) makes vectors; "
                      "labels=False leaves them out",
        "validation_split": "call split(0.8)", "subset": "call split(0.8)",
        "shuffle": "call shuffle()", "seed": "call shuffle(seed=...)",
        "color_mode": "map(ps.image.decode(channels=1)) after it",
        "interpolation": "map(ps.image.decode().resize(height, width)) after it",
    },
    "Loader": {
        "batch_size": _BATCH, "sampler": _SAMPLER,
        "batch_sampler": "ps.from_sequence takes batches by number; ps.torch.BatchSampler plans "
                         "for a torch DataLoader",
        "shuffle": "shuffle is a verb of the dataset: ps.Loader(dataset.shuffle().batch(n))",
        "collate_fn": _COLLATE, "pin_memory": _PINNED, "pin_memory_device": _PINNED,
        "drop_remainder": _DROP, "timeout": "use stall_after=seconds, stall_is_error=True",
        "worker_init_fn": "there is none: random numbers depend on the sample; keep objects "
                          "that are costly to create in the module of the function",
        "multiprocessing_context": "workers are always spawned: map(fn, workers=n)",
        "generator": _SEED, "seed": _SEED, "prefetch_factor": _AHEAD, "prefetch": _AHEAD,
        "persistent_workers": "leave it out: workers live as long as the loader",
        "in_order": _ORDER, "workers": "workers belong to a function: map(fn, workers=n)",
        "epochs": _EPOCHS, "num_epochs": _EPOCHS, "repeat": _EPOCHS,
        "steps": "use steps_per_epoch=", "world_size": _RANK, "num_replicas": _RANK,
        "num_shards": _RANK, "shard_options": _RANK, "read_options": _AHEAD,
        "snapshot_every_n_steps": "leave it out: state_dict() is cheap at every step",
        "use_multiprocessing": "workers belong to a function: map(fn, workers=n)",
        "max_queue_size": _AHEAD, "transform": "map is a verb of the dataset: dataset.map(fn)",
        "dataset_fn": "pass the dataset itself",
    },
    "MirroredStrategy": {
        "cross_device_ops": "leave it out: replicas of one process sum in memory"},
}

# What a call with too many positional arguments should be.
POSITIONAL: dict[str, str] = {
    "shuffle": _BUFFER,
    "batch": 'name them: batch(32, tail="drop") or batch(32, drop_remainder=True)',
    "cache": "name them: cache(\"folder\", bytes_max=...)",
    "enumerate": "it counts from 0: .enumerate().map(lambda i, x: (i + start, x))",
    "concatenate": "one at a time: a.concatenate(b).concatenate(c)",
    "map": _THREADS, "interleave": "name them: interleave(fn, cycle=..., block=...)",
    "Loader": _BATCH, "list_files": "call shuffle(): the files are sorted",
    "from_generator": "name it: spec=ps.Field(\"float32\", (3,))",
    "image_folder": "name them; decode and batch are verbs that follow it",
}

# What a call that leaves out an argument should be.
LEFT_OUT: dict[str, str] = {
    "batch": "pass the size of the global batch: batch(32)",
    "MirroredStrategy": 'name the devices: MirroredStrategy(["cpu:0", "cpu:1"])',
    "Loader": "pass a dataset of batches: ps.Loader(dataset.batch(32))",
}

_NOT_YET = "there is no such verb yet"
_RAGGED = "use batch(n): fields whose rows differ in size are ragged; padded_batch(n) pads them"
_MIXTURE = (f"{_NOT_YET}: ps.zip, concatenate and interleave combine datasets, and a generator can "
            "draw from several")

# Names on a Dataset, on its class and on the package.
VERBS: dict[str, str] = {
    "as_numpy_iterator": "iterate the dataset: `for x in dataset` yields NumPy values",
    "sparse_batch": _RAGGED, "group_by_window": _NOT_YET,
    "reduce": "use Python: functools.reduce(fn, dataset, start)",
    "unique": f"{_NOT_YET}: use filter, or numpy.unique on the array",
    "rejection_resample": f"{_NOT_YET}: use filter(lambda x, rng: ...)",
    "sample_from_datasets": _MIXTURE, "choose_from_datasets": _MIXTURE, "mix": _MIXTURE,
    "fingerprint": _NOT_YET, "options": "with_options(...) and the arguments of ps.Loader",
    "ignore_errors": "ps.Loader(dataset, on_error=\"skip\"), and loader.ledger lists what failed",
    "get_single_element": "(x,) = dataset",
    "counter": "ps.range(start, 2**62, step)", "prefetch_to_device": _PINNED,
    "copy_to_device": _PINNED, "num_elements": "cardinality(), or len(dataset)",
    "with_epoch": "Loader(steps_per_epoch=n), or take(n)", "limit": "take(n)",
    "random_map": "map(fn): a parameter named rng gets the sample's own generator",
    "map_with_index": "enumerate().map(fn)", "to_iter_dataset": "ps.Loader(dataset)",
    "train_test_split": "split(0.8)", "random_split": "split(0.8)",
    "with_format": "batch.numpy() and batch.torch() convert batches",
    "set_format": "batch.numpy() and batch.torch() convert batches",
    "class_names": "ps.image_folder(...).class_names, before other verbs",
}
SOURCES = ("range", "from_tensor_slices", "from_tensors", "from_generator", "list_files",
           "image_folder", "from_index", "from_sequence", "from_paths", "audio_folder",
           "audio_files", "load")
NAMES: dict[str, str] = {
    "DataLoader": "ps.Loader(dataset.batch(n))", "AUTOTUNE": _THREADS,
    "TFRecordDataset": "ps.from_tfrecord(paths, raw=True), or with a spec",
    "TextLineDataset": "ps.from_text(paths)",
    "CsvDataset": "ps.from_csv(paths)", "make_csv_dataset": "ps.from_csv(paths)",
    "FixedLengthRecordDataset": "ps.from_records(paths, record_bytes)",
    "TensorDataset": "ps.from_tensor_slices((x, y))",
    "ConcatDataset": "a.concatenate(b)", "IterableDataset": "ps.from_generator(make)",
    "Subset": "ps.from_tensor_slices(indices).map(data.__getitem__)",
    "WeightedRandomSampler": _SAMPLER, "RandomSampler": _SAMPLER, "BatchSampler":
        "ps.torch.BatchSampler", "DistributedSampler": "leave it out: each process finds its rank "
        "and loads its share", "default_collate": "leave it out: batch(n) stacks samples",
    "random_split": "dataset.split(0.8)", "sample_from_datasets": _MIXTURE,
    "choose_from_datasets": _MIXTURE, "MapDataset": "ps.from_index(size, fn)",
    "IterDataset": "ps.from_generator(make)", "WebDataset": "ps.from_tar(paths, fields)", "Options":
        "the arguments of ps.Loader", "enumerate": "dataset.enumerate()",
    "image_dataset_from_directory": "ps.image_folder(root)",
    "audio_dataset_from_directory": "ps.audio_folder(root).map(ps.audio.decode(...))",
}


def _arguments_of(signature: inspect.Signature) -> str:
    kinds = inspect.Parameter
    named = [each.name + ("=" if each.kind == kinds.KEYWORD_ONLY else "")
             for each in signature.parameters.values()
             if each.name != "self" and each.kind not in (kinds.VAR_KEYWORD,)]
    return f"the arguments are {', '.join(named)}" if named else "it takes no arguments"


def _misfit(word: str, signature: inspect.Signature, args: tuple[Any, ...],
            named: dict[str, Any], error: TypeError) -> ArgumentError:
    """The error for a call that does not match `signature`."""
    kinds = inspect.Parameter
    known = [each.name for each in signature.parameters.values()
             if each.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)]
    strange = next((name for name in named if name not in known), None)
    if strange is not None:
        near = difflib.get_close_matches(strange, known, 1)
        remedy = (ARGUMENTS.get(word, {}).get(strange) or ARGUMENTS["*"].get(strange)
                  or (f"did you mean {near[0]}=?" if near else _arguments_of(signature)))
        return ArgumentError(f"{word}: there is no argument {strange}=", remedy=remedy)
    if "too many positional" in str(error):
        return ArgumentError(f"{word}: too many positional arguments",
                             remedy=POSITIONAL.get(word) or _arguments_of(signature))
    return ArgumentError(f"{word}: {error}",
                         remedy=LEFT_OUT.get(word) or _arguments_of(signature))


def _checked_call(word: str, fn: Callable[..., Any],
                  signature: inspect.Signature) -> Callable[..., Any]:

    @functools.wraps(fn)
    def call(*args: Any, **named: Any) -> Any:
        try:
            return fn(*args, **named)
        except TypeError:
            try:
                signature.bind(*args, **named)
            except TypeError as error:
                raise _misfit(word, signature, args, named, error) from None
            raise

    return call


def explained(target: T, word: str = "", signature: inspect.Signature | None = None) -> T:
    """Decorates functions, and the public methods of classes: a call that does not match the
    signature raises an ArgumentError that says what to write instead."""
    if isinstance(target, type):
        for name, member in list(vars(target).items()):
            if inspect.isfunction(member) and (name == "__init__" or not name.startswith("_")):
                title = target.__name__ if name == "__init__" else name
                setattr(target, name, _checked_call(title, member, inspect.signature(member)))
        return target
    call: Any = target
    return _checked_call(  # type: ignore[return-value]
        word or call.__name__, call, signature or inspect.signature(call))


def verb_is_missing(name: str, known: list[str]) -> MissingNameError:
    """For an attribute that a dataset does not have."""
    if name in SOURCES:
        return MissingNameError(f"Dataset has no attribute {name!r}",
                                remedy=f"sources are functions: ps.{name}(...)")
    near = difflib.get_close_matches(name, known, 1)
    return MissingNameError(
        f"Dataset has no attribute {name!r}",
        remedy=VERBS.get(name, "") or (f"did you mean {near[0]}?" if near else ""))


def name_is_missing(name: str) -> MissingNameError:
    """For an attribute that the package does not have."""
    return MissingNameError(f"module 'penstock' has no attribute {name!r}",
                            remedy=NAMES.get(name, ""))
