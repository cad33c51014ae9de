"""Wrong arguments: every public function raises one of penstock's errors."""

import functools
import inspect
import io
import pathlib
import tarfile
import tempfile

import numpy as np
import pytest
from record_writers import example, frame

import penstock as ps
from penstock import foreign
from penstock.loader import loader_options

WRONG = [None, -1, 1.5, "x", 2**70, object(), True, b"\xff", [object()], float("nan")]
# The exceptions that a call may raise. TypeError and AttributeError are Python's own, for objects
# that are not datasets, tensors or steps; they never contain the texts below.
DOCUMENTED = (ps.ConfigError, ps.StateError, ps.IoError, IndexError, KeyError, TypeError,
              AttributeError)
NEVER = ("bad_cast", "incompatible function arguments", "nanobind", "_native", "bad_alloc",
         "JSON serializable", "object has no attribute", "unhashable", "vector::")


def plain(x):
    return x


def dataset():
    return ps.from_tensor_slices(np.arange(8))


def loader():
    return ps.Loader(dataset().batch(2))


def strategy():
    return ps.MirroredStrategy(["cpu:0", "cpu:1"])


def batch():
    return next(iter(loader()))


def documents():
    return ps.from_ragged(np.arange(6), np.array([0, 1, 3, 6]))


def ragged_batch():
    return next(iter(ps.Loader(ps.from_index(4, lambda i: np.arange(i + 1)).batch(4))))


def step_of(own):
    return own.distribute(dataset().batch(4)).next()


def values_of(own):
    return own.run(lambda share: 1.0, step_of(own))


def chain():
    return ps.image.decode()


def context():
    seen = []

    def make(given):
        seen.append(given)
        return dataset().batch(2)

    strategy().distribute_from_function(make)
    return seen[0]


def sound_files(folder):
    (folder / "one").mkdir(exist_ok=True)
    (folder / "one" / "a.wav").write_bytes(b"x")
    return folder


@functools.cache
def record_file(name, content):
    """The path of a file that lives as long as the tests."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="penstock_arguments_")) / name
    path.write_bytes(content)
    return str(path)


def tar_of(name, content):
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return written.getvalue()


def npy_of(values):
    written = io.BytesIO()
    np.save(written, np.array(values))
    return written.getvalue()


def picture_files(folder):
    (folder / "one").mkdir(exist_ok=True)
    (folder / "one" / "a.png").write_bytes(b"x")
    return folder


# Each public function with valid arguments. A method is a function without arguments that creates
# its object, and its name.
FUNCTIONS = {
    "range": (lambda: ps.range, {"start": 0, "stop": 9, "step": 1}),
    "zip": (lambda: lambda one, strict: ps.zip(one, dataset(), strict=strict),
            {"one": dataset(), "strict": False}),
    "cast": (lambda: ps.cast, {"dtype": "float32", "path": ""}),
    "from_tensors": (lambda: ps.from_tensors, {"sample": 1, "name": "n"}),
    "from_tensor_slices": (lambda: ps.from_tensor_slices, {"arrays": [1, 2], "name": "n"}),
    "from_index": (lambda: ps.from_index, {"size": 4, "fn": plain, "name": "n", "spec": None}),
    "from_generator": (lambda: ps.from_generator,
                       {"factory": lambda: iter([1]), "name": "n", "spec": None,
                        "resumable": False}),
    "from_sequence": (lambda: ps.from_sequence,
                      {"sequence": [np.zeros(2)], "name": "n", "spec": None, "pure": False,
                       "check": True}),
    "from_paths": (lambda: ps.from_paths, {"paths": ["a.png"], "labels": [0]}),
    "list_files": (lambda: ps.list_files, {"pattern": "/proc/cpuinfo", "hidden": False}),
    "read_file": (lambda: ps.read_file, {"path": ""}),
    "list_images": (lambda: ps.list_images, {"root": picture_files, "extensions": ["png"],
                                             "follow_links": "inside", "labels": True,
                                             "index": ""}),
    "image_folder": (lambda: ps.image_folder,
                     {"root": picture_files, "extensions": ["png"], "follow_links": "inside",
                      "labels": True, "with_path": False, "index": ""}),
    "audio_files": (lambda: ps.audio_files, {"paths": ["a.wav"], "labels": [0]}),
    "list_audio": (lambda: ps.list_audio, {"root": sound_files, "extensions": ["wav"],
                                           "follow_links": "inside", "labels": True,
                                           "index": ""}),
    "audio_folder": (lambda: ps.audio_folder,
                     {"root": sound_files, "extensions": ["wav"], "follow_links": "inside",
                      "labels": True, "with_path": False, "index": ""}),
    "audio.decode": (lambda: ps.audio.decode,
                     {"path": "audio", "rate": 16_000, "channels": 1, "frames": 100,
                      "crop": "start", "pad": True, "seed": 1, "values_max": 1000}),
    "get_strategy": (lambda: ps.get_strategy, {}),
    "replica_context": (lambda: ps.replica_context, {}),
    "rng": (lambda: ps.rng, {}),
    "Field": (lambda: ps.Field, {"dtype": "float32", "shape": (2, None)}),
    "Counted": (lambda: ps.Counted, {"sum": 1.0, "count": 2}),
    "PerReplica": (lambda: ps.PerReplica, {"values": [1.0], "counts": [1], "masks": [[1]]}),
    "MirroredStrategy": (lambda: ps.MirroredStrategy, {"devices": ["cpu:0"]}),
    "OneDeviceStrategy": (lambda: ps.OneDeviceStrategy, {"device": "cpu:0"}),
    "Strategy": (lambda: ps.Strategy, {"devices": ["cpu:0"], "one": True}),
    "Loader": (lambda: ps.Loader,
               {"dataset": dataset().batch(2), "steps_per_epoch": 2, "world": 2, "rank": 0,
                "tail": "short", "threads": 1, "lookahead_bytes": 1 << 20, "on_error": "skip",
                "ledger_file": "", "skip_limit": 1, "stall_after": 1.0, "stall_is_error": False,
                "empty": "deliver", "debug": False}),
    "Dataset": (lambda: ps.Dataset, {"native": dataset()._native}),
    "Feed": (lambda: ps.Feed, {"native": 3}),
    "FolderIndex": (lambda: ps.FolderIndex, {"native": 3}),
    "ImageFolder": (lambda: ps.ImageFolder, {"native": 3, "index": 3}),
    "AudioFolder": (lambda: ps.AudioFolder, {"native": 3, "index": 3}),
    "Ledger": (lambda: ps.Ledger, {"native": 3}),
    "Report": (lambda: ps.Report, {"native": 3}),
    "Dataset.map": (lambda: dataset().map,
                    {"fn": plain, "name": "n", "seed": 1, "spec": None, "random": False,
                     "row_wise": False, "workers": 0}),
    "Dataset.map_batch": (lambda: dataset().map_batch,
                          {"fn": plain, "name": "n", "spec": None, "workers": 0}),
    "Dataset.filter": (lambda: dataset().filter,
                       {"predicate": plain, "name": "n", "seed": 1, "random": False,
                        "mask": False}),
    "Dataset.scan": (lambda: dataset().scan,
                     {"initial_state": 0, "scan_func": plain, "name": "n", "spec": None}),
    "Dataset.take_while": (lambda: dataset().take_while,
                           {"predicate": plain, "name": "n", "seed": 1, "random": False}),
    "Dataset.select": (lambda: dataset().select,
                       {"predicate": plain, "name": "n", "seed": 1, "random": False}),
    "Dataset.split": (lambda: dataset().split, {"fraction": 0.5, "seed": 1}),
    "Dataset.flat_map": (lambda: dataset().flat_map, {"fn": plain, "name": "n", "spec": None}),
    "Dataset.interleave": (lambda: dataset().interleave,
                           {"fn": plain, "cycle": 2, "block": 1, "name": "n", "spec": None}),
    "Dataset.shuffle": (lambda: dataset().shuffle,
                        {"seed": 1, "reshuffle_each_epoch": True, "window": 2, "blocks": 2}),
    "Dataset.repeat": (lambda: dataset().repeat, {"count": 2}),
    "Dataset.take": (lambda: dataset().take, {"count": 2}),
    "Dataset.skip": (lambda: dataset().skip, {"count": 2}),
    "Dataset.shard": (lambda: dataset().shard, {"count": 2, "index": 0}),
    "Dataset.concatenate": (lambda: dataset().concatenate, {"other": dataset()}),
    "Dataset.zip": (lambda: lambda one, strict: dataset().zip(one, strict=strict),
                    {"one": dataset(), "strict": False}),
    "Dataset.enumerate": (lambda: dataset().enumerate, {}),
    "Dataset.batch": (lambda: dataset().batch,
                      {"size": 2, "tail": "short", "drop_remainder": False, "collate_fn": plain,
                       "spec": None, "workers": 0, "name": "n"}),
    "Dataset.padded_batch": (lambda: dataset().padded_batch,
                             {"size": 2, "values": 0, "multiple_of": 8, "length": 16,
                              "side": "left", "tail": "short", "drop_remainder": False}),
    "Dataset.bucket_by_length": (lambda: documents().bucket_by_length,
                                 {"boundaries": [2], "batch_sizes": [2, 1], "field": "",
                                  "tokens_per_batch": None, "length": None, "values": 0,
                                  "multiple_of": 2,
                                  "pad_to_boundary": False, "side": "left", "tail": "short",
                                  "drop_remainder": False, "window": None}),
    "Dataset.bucket_by_sequence_length": (
        lambda: documents().bucket_by_sequence_length,
        {"element_length_func": len, "bucket_boundaries": [2], "bucket_batch_sizes": [2, 1],
         "padding_values": 0, "pad_to_bucket_boundary": False, "no_padding": False,
         "drop_remainder": False}),
    "Dataset.ragged_batch": (lambda: documents().ragged_batch,
                             {"size": 2, "drop_remainder": False}),
    "Dataset.window": (lambda: dataset().window,
                       {"size": 2, "shift": 1, "stride": 1, "drop_remainder": True}),
    "Dataset.truncate": (lambda: documents().truncate,
                         {"length": 2, "field": "", "keep": "last"}),
    "Dataset.tokenize": (lambda: ps.from_tensor_slices(["a b", "c"]).tokenize,
                         {"tokenizer": plain, "field": "", "to": "", "workers": 0}),
    "from_arrow": (None, {}),
    "from_arrow_files": (lambda: ps.from_arrow_files, {"paths": "none.arrow"}),
    "from_parquet": (lambda: ps.from_parquet, {"paths": "none.parquet"}),
    "from_text": (lambda: ps.from_text, {"paths": record_file("a.txt", b"one\ntwo\n")}),
    "from_tfrecord": (lambda: ps.from_tfrecord,
                      {"paths": record_file("a.tfrecord", frame(example(x=[1, 2]))),
                       "spec": {"x": ps.Feature("int64", (2,))}}),
    "from_tar": (lambda: ps.from_tar, {"paths": record_file("a.tar", tar_of("a.cls", b"3"))}),
    "from_csv": (lambda: ps.from_csv, {"paths": record_file("a.csv", b"x,y\n1,a\n")}),
    "from_jsonl": (lambda: ps.from_jsonl, {"paths": record_file("a.jsonl", b'{"x": 1}\n')}),
    "from_records": (lambda: ps.from_records,
                     {"paths": record_file("a.bin", bytes(12)), "record_bytes": 4}),
    "from_npy": (lambda: ps.from_npy, {"paths": record_file("a.npy", npy_of([1, 2]))}),
    "from_litdata": (lambda: ps.from_litdata, {"folder": "none"}),
    "from_mds": (lambda: ps.from_mds, {"folder": "none"}),
    "write_records": (lambda: ps.write_records, {"dataset": dataset(), "folder": "written"}),
    "Feature": (lambda: ps.Feature, {"dtype": "int64"}),
    "WrittenRecords": (None, {}),
    "Dataset.batch_by_tokens": (lambda: documents().batch_by_tokens,
                                {"max_tokens": 100, "boundaries": [50], "field": "", "values": 0,
                                 "side": "left", "tail": "short", "drop_remainder": False,
                                 "window": None}),
    "Dataset.pack": (lambda: documents().pack,
                     {"length": 8, "how": "best_fit", "separator": 1, "too_long": "cut", "pad": 0,
                      "field": "", "mask": "", "attention": "row", "cu_seqlens": True}),
    "from_ragged": (lambda: ps.from_ragged,
                    {"values": np.arange(3), "offsets": np.array([0, 3]), "name": "n"}),
    "from_windows": (lambda: ps.from_windows,
                     {"values": np.arange(9), "length": 3, "stride": 2, "name": "n"}),
    "tokens": (None, {}),
    "from_megatron": (None, {}),
    "Ragged": (None, {}),
    "Ragged.to_padded": (lambda: ragged_batch().numpy().to_padded,
                         {"value": 0, "to_multiple_of": 2, "length": 8, "side": "left"}),
    "Ragged.tolist": (lambda: ragged_batch().numpy().tolist, {}),
    "Ragged.torch": (None, {}),
    "Ragged.torch_nested": (None, {}),
    "Dataset.unbatch": (lambda: dataset().batch(2).unbatch, {}),
    "Dataset.rebatch": (lambda: dataset().batch(2).rebatch,
                        {"size": 3, "tail": "short", "drop_remainder": False}),
    "Dataset.cache": (lambda: dataset().cache, {"folder": None, "bytes_max": 9, "place": "here",
                                               "when_full": "recompute"}),
    "Dataset.snapshot": (lambda: dataset().snapshot, {"folder": "snapshot"}),
    "Dataset.save": (lambda: dataset().save, {"folder": "save", "files": 1, "overwrite": True}),
    "load": (lambda: ps.load, {"folder": "nothing"}),
    "Dataset.prefetch": (lambda: dataset().prefetch, {"steps": 1, "bytes": 1}),
    "Dataset.with_options": (lambda: dataset().with_options,
                             {"name": "n", "threads": 1, "lookahead_bytes": 1}),
    "Dataset.apply": (lambda: dataset().apply, {"transform": plain}),
    "Dataset.cardinality": (lambda: dataset().cardinality, {}),
    "Dataset.describe": (lambda: dataset().describe, {}),
    "Dataset.sample": (lambda: dataset().sample, {"number": 1}),
    "Loader.set_epoch": (lambda: loader().set_epoch, {"epoch": 1}),
    "Loader.state_dict": (lambda: loader().state_dict, {}),
    "Loader.load_state_dict": (lambda: loader().load_state_dict, {"state": loader().state_dict()}),
    "Loader.step": (lambda: loader().step, {"step": 1}),
    "Loader.report": (lambda: loader().report, {}),
    "Loader.stop": (lambda: loader().stop, {}),
    "Feed.report": (lambda: strategy().distribute(dataset().batch(2)).report, {}),
    "Report.read": (lambda: ps.Report.read, {"trace": record_file("run.json", b"")}),
    "Report.save": (lambda: loader().report().save, {"file": "run.html"}),
    "Report.compare": (lambda: loader().report().compare, {"before": loader().report()}),
    "doctor": (lambda: ps.doctor, {"data": ""}),
    "progress": (lambda: ps.progress, {"loader": loader(), "show": False}),
    "Feed.next": (lambda: strategy().distribute(dataset().batch(2)).next, {}),
    "Feed.set_epoch": (lambda: strategy().distribute(dataset().batch(2)).set_epoch, {"epoch": 1}),
    "Feed.state_dict": (lambda: strategy().distribute(dataset().batch(2)).state_dict, {}),
    "Feed.load_state_dict": (lambda: strategy().distribute(dataset().batch(2)).load_state_dict,
                             {"state": loader().state_dict()}),
    "Feed.stop": (lambda: strategy().distribute(dataset().batch(2)).stop, {}),
    "Strategy.scope": (lambda: strategy().scope, {}),
    "Strategy.distribute": (lambda: strategy().distribute,
                            {"dataset": dataset().batch(2), "steps_per_epoch": 2,
                             "restart": False, "short_epoch": False, "threads": 1,
                             "stall_after": 1.0, "tail": "short"}),
    "Strategy.distribute_from_function": (
        lambda: strategy().distribute_from_function,
        {"make": lambda context: dataset().batch(2), "steps_per_epoch": 2, "restart": False,
         "short_epoch": False, "on_error": "skip", "skip_limit": 1}),
    "Strategy.run": (lambda: lambda fn, step: (lambda own: own.run(
        fn, step_of(own) if step == "right" else step))(strategy()),
        {"fn": lambda share: 1.0, "step": "right"}),
    "Strategy.reduce": (lambda: lambda op, value, axis: (lambda own: own.reduce(
        op, values_of(own) if value == "right" else value, axis))(strategy()),
        {"op": "sum", "value": "right", "axis": None}),
    "Strategy.gather": (lambda: lambda value, axis: (lambda own: own.gather(
        own.run(lambda share: share.numpy(), step_of(own)) if value == "right" else value,
        axis))(strategy()), {"value": "right", "axis": 0}),
    "Strategy.per_replica": (lambda: strategy().per_replica, {"fn": plain}),
    "PerReplica.each": (lambda: ps.PerReplica([1.0]).each, {"combine": lambda *_: 1}),
    "FolderIndex.save": (None, {}),
    "FolderIndex.check": (None, {}),
    "Batch.keys": (lambda: batch().keys, {}),
    "Batch.numpy": (lambda: batch().numpy, {}),
    "Batch.dlpack": (lambda: batch().dlpack, {"path": ""}),
    "Batch.dlpack_parts": (lambda: batch().dlpack_parts, {}),
    "Batch.torch": (None, {}),
    "Batch.lengths": (lambda: ragged_batch().lengths, {"path": ""}),
    "Batch.row": (lambda: batch().row, {"index": 1}),
    "Batch.__getitem__": (lambda: batch().__getitem__, {"key": ""}),
    "Batch.__contains__": (lambda: lambda path: path in batch(), {"path": ""}),
    "Plan.cut": (lambda: loader().plan.cut, {"step": 1}),
    "Plan.check": (lambda: loader().plan.check, {"pass_number": 1}),
    "Plan.explain": (lambda: loader().plan.explain, {}),
    "Plan.serialize": (lambda: loader().plan.serialize, {}),
    "Step.masks": (lambda: step_of(strategy()).masks, {}),
    "Replica.barrier": (None, {}),
    "Replica.all_reduce": (lambda: lambda op, value, count: ps.OneDeviceStrategy().run(
        lambda replica, share: replica.all_reduce(op, value, count),
        step_of(ps.OneDeviceStrategy())), {"op": "sum", "value": 1.0, "count": 1}),
    "InputContext.per_replica_batch": (lambda: context().per_replica_batch, {"global_batch": 4}),
    "Sequence.on_epoch_begin": (None, {}),
    "Sequence.on_epoch_end": (None, {}),
    "image.of": (lambda: ps.image.of, {"field": ""}),
    "image.decode": (lambda: ps.image.decode,
                     {"channels": 3, "field": "", "keep_16_bit": False, "fast_scale": False,
                      "pixels_max": 1 << 20}),
    "image.encode": (lambda: ps.image.encode,
                     {"format": "png", "quality": 90, "field": "image"}),
    "image.one_hot": (lambda: ps.image.one_hot, {"classes": 3, "field": "label"}),
    "image.mixup": (lambda: ps.image.mixup, {"alpha": 0.2, "chance": 1.0, "seed": 1,
                                             "image": "image", "label": "label"}),
    "image.cutmix": (lambda: ps.image.cutmix, {"alpha": 1.0, "chance": 1.0, "seed": 1,
                                               "image": "image", "label": "label"}),
    "Chain": (lambda: ps.image.Chain, {"native": 3}),
    "Chain.seed": (lambda: chain().seed, {"seed": 1}),
    "Chain.step": (lambda: chain().step, {"word": "resize", "height": 8, "width": 8}),
}


def image_ops():
    """Every op of a chain, with the defaults of its signature, or small values."""
    ops = {}
    for word in [name for name in vars(ps.image.Chain) if not name.startswith("_")]:
        if word not in ("seed", "step"):
            names = list(inspect.signature(getattr(ps.image.Chain, word)).parameters)[1:]
            ops[f"Chain.{word}"] = (lambda word=word: getattr(chain(), word),
                                    {name: 8 for name in names})
    return ops


def plain_methods():
    """Methods that need no argument; their defaults are valid."""
    for owner, make in ((ps.Dataset, dataset), (ps.Loader, loader)):
        for name, method in vars(owner).items():
            if inspect.isfunction(method) and not name.startswith("_"):
                needed = [each for each in list(inspect.signature(method).parameters.values())[1:]
                          if each.default is inspect.Parameter.empty]
                if not needed:
                    yield f"{owner.__name__}.{name}", (
                        lambda name=name, make=make: getattr(make(), name), {})


FUNCTIONS = {**dict(plain_methods()), **FUNCTIONS, **image_ops()}
ABSTRACT = {"Sequence", "Batch", "Plan", "Step", "Replica"}  # created by the engine or by the user


def public_functions():
    """Everything that a user can call, by the names above."""
    for name in ps.__all__:
        thing = getattr(ps, name)
        if inspect.isclass(thing) and not issubclass(thing, BaseException):
            if name not in ABSTRACT:
                yield name
            for method, value in vars(thing).items():
                if not method.startswith("_") and callable(value):
                    yield f"{name}.{method}"
        elif callable(thing) and not inspect.isclass(thing):
            yield name
    for module in (ps.image, ps.audio):
        for name, thing in vars(module).items():
            if inspect.isfunction(thing) and not name.startswith("_") and (
                    thing.__module__ == module.__name__):
                yield f"{module.__name__.split('.')[1]}.{name}"
    for method in vars(ps.image.Chain):
        if not method.startswith("_"):
            yield f"Chain.{method}"


def defaults_of(function):
    """The arguments with a default; those that are not in the tables above are tested, too."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of the native module
        return {}
    return {each.name: each.default for each in parameters
            if each.default is not inspect.Parameter.empty}


def test_every_public_function_is_covered():
    assert set(public_functions()) - set(FUNCTIONS) == set()


@pytest.mark.parametrize("name", [name for name, (make, _) in FUNCTIONS.items() if make])
def test_wrong_values_raise_penstocks_own_errors(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some values are names of folders
    make, right = FUNCTIONS[name]
    right = {**defaults_of(make()),
             **{key: value(tmp_path) if value is picture_files or value is sound_files else value
                for key, value in right.items()}}
    wrong_words = []
    for argument in right:
        for value in WRONG:
            try:
                make()(**{**right, argument: value})
            except DOCUMENTED as error:
                if any(each in str(error) for each in NEVER):
                    wrong_words.append((argument, value, f"{type(error).__name__}: {error}"))
            except Exception as error:
                wrong_words.append((argument, value, f"{type(error).__name__}: {error}"))
    assert wrong_words == []


# Calls that must raise, with the sentence that says what to do

REFUSED = {
    "threads=-1 is below 0 -> the maximum": lambda: ps.Loader(dataset().batch(2), threads=-1),
    "lookahead_bytes=-1": lambda: ps.Loader(dataset().batch(2), lookahead_bytes=-1),
    "skip_limit=-1": lambda: ps.Loader(dataset().batch(2), on_error="skip", skip_limit=-1),
    "threads=1.5 is not a whole number": lambda: ps.Loader(dataset().batch(2), threads=1.5),
    "threads=True is not a whole number": lambda: ps.Loader(dataset().batch(2), threads=True),
    "stall_after=-1 is below 0.001 -> seconds": lambda: ps.Loader(dataset().batch(2),
                                                                  stall_after=-1),
    "stall_after=nan is not a number": lambda: ps.Loader(dataset().batch(2),
                                                         stall_after=float("nan")),
    "stall_is_error=1 is neither": lambda: ps.Loader(dataset().batch(2), stall_is_error=1),
    "steps_per_epoch=0 is below 1": lambda: ps.Loader(dataset().batch(2), steps_per_epoch=0),
    "prefetch: steps=-1 is below 0 -> leave prefetch out": lambda: dataset().prefetch(-1),
    "take: count=2.0 is not a whole number -> -1 takes all": lambda: dataset().take(2.0),
    "skip: count=-1 is below 0": lambda: dataset().skip(-1),
    "sample: number='x'": lambda: dataset().sample("x"),
    "shuffle: seed=-1 is below 0 -> a seed": lambda: dataset().shuffle(seed=-1),
    "batch: size=True is not a whole": lambda: dataset().batch(True),
    "split: fraction=2 is above 1": lambda: dataset().split(2),
    'batch: tail: there is no policy \'round\' -> use "short", "even"':
        lambda: dataset().batch(2, tail="round"),
    "MirroredStrategy: devices='cpu:0' is not a list": lambda: ps.MirroredStrategy("cpu:0"),
    "world= has no effect": lambda: strategy().distribute(dataset().batch(2), world=2, rank=0),
    "Field: shape=3 is not a list": lambda: ps.Field("float32", 3),
    "resize: height=None is not a value": lambda: chain().resize(None, 8),
    "Counted: count=-1 is below 0": lambda: ps.Counted(1.0, -1),
    "a Dataset is not made from 3": lambda: ps.Dataset(3),
    # Calls without an effect
    "map: seed= is for Python functions": lambda: ps.from_paths(["a"]).map(chain(), seed=3),
    "...seed(n) sets the seed of a chain": lambda: ps.from_paths(["a"]).map(chain(), seed=3),
    "map: spec= is for Python functions": lambda: dataset().map(ps.cast("int8"),
                                                                spec=ps.Field("i1")),
    "leave out row_wise=": lambda: dataset().map(ps.cast("int8"), row_wise=True),
    "ledger_file= has no effect": lambda: ps.Loader(dataset().batch(2), ledger_file="x"),
    "skip_limit= has no effect": lambda: ps.Loader(dataset().batch(2), skip_limit=3),
    "check=False turns off": lambda: ps.from_sequence([1], pure=True, check=False),
    "have no save() and restore()": lambda: ps.from_generator([1], resumable=True),
    "select: predicate=[1] is not a function": lambda: dataset().select([1]),
    'map(lambda a, b: {"a": a, "b": b})': lambda: ps.zip({"a": dataset()}),
    "a.concatenate(b).concatenate(c)": lambda: dataset().concatenate(dataset(), dataset()),
}


@pytest.mark.parametrize("words", REFUSED)
def test_numbers_out_of_range_name_the_range(words):
    with pytest.raises(ps.ConfigError) as raised:
        REFUSED[words]()
    assert words in str(raised.value) and " -> " in str(raised.value)


def test_numpy_integers_are_accepted():
    rows = dataset().take(np.int64(6)).shuffle(seed=np.uint8(3), window=np.int32(2))
    assert len(ps.Loader(rows.batch(np.int16(2)), threads=np.int8(0))) == 3
    assert loader().step(np.int64(1)).step == 1
    assert ps.image.decode().resize(np.int64(8), 8)


# Words of other libraries

FOREIGN = {
    "needs no buffer": lambda: dataset().shuffle(1000),
    "shuffle: there is no argument buffer_size= -> leave the number out":
        lambda: dataset().shuffle(buffer_size=9),
    "use reshuffle_each_epoch=": lambda: dataset().shuffle(reshuffle_each_iteration=True),
    "map: there is no argument num_parallel_calls= -> leave it out":
        lambda: dataset().map(plain, num_parallel_calls=4),
    "the order is the same with any number": lambda: dataset().map(plain, deterministic=False),
    'use tail="drop"': lambda: dataset().batch(2, drop_last=True),
    "batch(32, drop_remainder=True)": lambda: dataset().batch(2, True),
    "use size=": lambda: dataset().batch(batch_size=2),
    "use cycle=": lambda: dataset().interleave(plain, cycle_length=2),
    "use block=": lambda: dataset().interleave(plain, block_length=2),
    'cache("folder")': lambda: dataset().cache(filename="file"),
    "i + start": lambda: dataset().enumerate(start=5),
    "prefetches by itself": lambda: dataset().prefetch(buffer_size=2),
    "use count=": lambda: dataset().shard(num_shards=2, index=0),
    "use spec=": lambda: ps.from_generator(lambda: iter([1]), output_signature=3),
    "Loader: there is no argument batch_size= -> batch is a verb":
        lambda: ps.Loader(dataset(), batch_size=2),
    "ps.Loader(dataset.batch(n))": lambda: ps.Loader(dataset(), 2),
    "dataset.shuffle().batch(n)": lambda: ps.Loader(dataset().batch(2), shuffle=True),
    "map(data.__getitem__, workers=n)": lambda: ps.Loader(dataset().batch(2), num_workers=2),
    "there are no samplers yet": lambda: ps.Loader(dataset().batch(2), sampler=[1]),
    "there is no pinned memory yet": lambda: ps.Loader(dataset().batch(2), pin_memory=True),
    "stall_is_error=True": lambda: ps.Loader(dataset().batch(2), timeout=3),
    "Loader: there is no argument prefetch_factor=":
        lambda: strategy().distribute(dataset().batch(2), prefetch_factor=2),
    "did you mean lookahead_bytes=?": lambda: ps.Loader(dataset().batch(2), lookahead_byte=2),
    "the arguments are count": lambda: dataset().take(often=2),
    "pass the size of the global batch": lambda: dataset().batch(),
    "name the devices": lambda: ps.MirroredStrategy(),
}
FOREIGN_NAMES = {
    "sources are functions: ps.range(...)": lambda: ps.Dataset.range(3),
    "ps.from_tensor_slices(...)": lambda: ps.Dataset.from_tensor_slices([1]),
    "`for x in dataset` yields NumPy values": lambda: dataset().as_numpy_iterator(),
    "fields whose rows differ in size are ragged": lambda: dataset().sparse_batch(2),
    "ps.Loader(dataset.batch(n))": lambda: ps.DataLoader,
    "ps.from_tfrecord(paths, raw=True)": lambda: ps.TFRecordDataset("x"),
    "Loader(dataset, on_error": lambda: dataset().ignore_errors(),
    "leave it out: functions run in parallel": lambda: ps.AUTOTUNE,
    "did you mean shuffle?": lambda: dataset().suffle(),
}


@pytest.mark.parametrize("words", FOREIGN)
def test_an_argument_of_another_library_says_what_to_write_instead(words):
    with pytest.raises(ps.ConfigError) as raised:
        FOREIGN[words]()
    assert words in str(raised.value)
    assert isinstance(raised.value, TypeError)  # what Python raises for such a call


@pytest.mark.parametrize("words", FOREIGN_NAMES)
def test_a_name_of_another_library_says_what_to_write_instead(words):
    with pytest.raises(ps.ConfigError) as raised:
        FOREIGN_NAMES[words]()
    assert words in str(raised.value)
    assert isinstance(raised.value, AttributeError)  # so that hasattr is False


def test_the_table_of_foreign_words_has_no_penstock_word():
    for word, names in foreign.ARGUMENTS.items():
        own = [getattr(place, word) for place in (ps, ps.Dataset) if word in vars(place)]
        for function in own:
            assert not set(names) & set(inspect.signature(function).parameters), word
    assert not [name for name in foreign.VERBS if hasattr(ps.Dataset, name)]
    assert not [name for name in foreign.NAMES if hasattr(ps, name)]
    assert all(hasattr(ps, name) for name in foreign.SOURCES)


def test_a_type_error_of_a_users_function_is_unchanged():
    def wrong(dataset):
        raise TypeError("my own")

    with pytest.raises(TypeError, match="^my own$"):
        dataset().apply(wrong)


def test_signatures_and_help_are_those_of_the_functions():
    assert list(inspect.signature(ps.Dataset.batch).parameters)[:3] == ["self", "size", "tail"]
    assert ps.Loader.__init__.__doc__ and ps.range.__doc__.startswith("The numbers")


def test_the_keywords_of_loader_match_the_engine():
    known = set(ps._native.loader_keywords())
    keywords = set(inspect.signature(ps.Loader.__init__).parameters)
    # Only in Python: the dataset, epochs counted in steps, and debugging in this thread.
    assert keywords - {"self", "dataset", "steps_per_epoch", "debug"} == known - {"shares_from"}
    checked = set(inspect.signature(loader_options).parameters)
    assert checked - {"debug"} == known
    assert set(loader_options()) - {"debug"} == known
