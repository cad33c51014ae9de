"""ps.torch against the real torch: adapters, state, and exact gradients on uneven data."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch.distributed.checkpoint as dcp  # noqa: E402
from torch.distributed.checkpoint.stateful import Stateful  # noqa: E402
from torch.utils.data import DataLoader, Dataset  # noqa: E402

import penstock as ps  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples/python/ddp_uneven.py"


def table(count=103):
    return ps.from_tensor_slices({"x": np.arange(2.0 * count).reshape(count, 2),
                                  "id": np.arange(count)}).shuffle(seed=7)


class Squares(Dataset):
    """A user's map-style dataset."""

    def __init__(self, count=103):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return torch.tensor(index * index, dtype=torch.float64), index


# The loader itself


def test_batches_are_tensors_on_the_memory_of_the_batch():
    batch = next(iter(ps.Loader(table().batch(16))))
    tensors = batch.torch()
    assert tensors["x"].shape == (16, 2) and tensors["x"].dtype == torch.float64
    assert tensors["x"].data_ptr() == batch["x"].__array_interface__["data"][0]
    del batch
    assert len(set(tensors["id"].tolist())) == 16


def test_everything_with_a_position_implements_the_stateful_protocol():
    loader = ps.Loader(table().batch(16))
    for stateful in (loader, ps.torch.IterableDataset(loader), ps.torch.BatchSampler(103, 16)):
        assert isinstance(stateful, Stateful)


def test_a_loader_is_saved_in_a_distributed_checkpoint(tmp_path):
    loader = ps.Loader(table().batch(16))
    loop = iter(loader)
    for _ in range(3):
        next(loop)
    dcp.save({"data": loader}, checkpoint_id=tmp_path / "checkpoint", no_dist=True)
    expected = [batch["id"].tolist() for batch in loop]
    later = ps.Loader(table().batch(16))
    dcp.load({"data": later}, checkpoint_id=tmp_path / "checkpoint", no_dist=True)
    assert [batch["id"].tolist() for batch in later] == expected


def test_a_state_is_loaded_by_torch_load_with_weights_only(tmp_path):
    loader = ps.Loader(table().batch(16))
    next(iter(loader))
    torch.save(loader.state_dict(), tmp_path / "state.pt")
    assert torch.load(tmp_path / "state.pt", weights_only=True) == loader.state_dict()


def test_a_loader_cannot_be_sent_to_workers():
    with pytest.raises(TypeError, match="num_workers=0"):
        import pickle
        pickle.dumps(ps.Loader(table().batch(16)))


# An IterableDataset


def test_an_iterable_dataset_yields_whole_batches_through_a_dataloader():
    face = ps.torch.IterableDataset(ps.Loader(table().batch(16)))
    loader = DataLoader(face, batch_size=None)
    assert len(face) == len(loader) == 7
    epochs = [[batch["id"].tolist() for batch in loader] for _ in range(2)]
    assert [len(step) for step in epochs[0]] == [16] * 6 + [7]
    assert sorted(sum(epochs[0], [])) == sorted(sum(epochs[1], [])) == list(range(103))
    assert epochs[0] != epochs[1]


def test_an_iterable_dataset_converts_as_configured():
    face = ps.torch.IterableDataset(ps.Loader(table().batch(16)), convert=lambda batch: batch)
    assert [batch.step for batch in DataLoader(face, batch_size=None)] == list(range(7))


def test_an_iterable_dataset_rejects_worker_processes():
    face = ps.torch.IterableDataset(ps.Loader(table().batch(16)))
    with pytest.raises(Exception, match="num_workers=0"):
        next(iter(DataLoader(face, batch_size=None, num_workers=2)))


def test_set_epoch_after_a_state_of_that_epoch_keeps_the_position():
    face = ps.torch.IterableDataset(ps.Loader(table().batch(16)))
    face.set_epoch(2)
    loop = iter(face)
    for _ in range(3):
        next(loop)
    state = face.state_dict()
    expected = [batch["id"].tolist() for batch in loop]
    later = ps.torch.IterableDataset(ps.Loader(table().batch(16)))
    later.load_state_dict(state)
    later.set_epoch(2)  # like training loops at the start of an epoch
    assert [batch["id"].tolist() for batch in later] == expected
    later.set_epoch(2)  # nothing was loaded since: starts at the beginning
    assert len(list(later)) == 7


# A BatchSampler for a user's dataset


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("world", [1, 2, 3])
def test_a_batch_sampler_serves_every_sample_once_over_all_ranks(world, workers):
    seen = []
    for rank in range(world):
        sampler = ps.torch.BatchSampler(Squares(), 16, seed=7, world=world, rank=rank)
        loader = DataLoader(Squares(), batch_sampler=sampler, num_workers=workers)
        assert len(loader) == len(sampler) == 7
        for values, numbers in loader:
            assert values.tolist() == [n * n for n in numbers.tolist()]
            seen += numbers.tolist()
    assert sorted(seen) == list(range(103))


def test_a_batch_sampler_cuts_as_a_loader_does():
    loader = ps.Loader(ps.range(103).shuffle(seed=7).batch(16), world=3, rank=1)
    sampler = ps.torch.BatchSampler(103, 16, seed=7, world=3, rank=1)
    for _ in range(2):
        assert list(sampler) == [batch.numpy().tolist() for batch in loader]
    sampler.set_epoch(0)
    loader.set_epoch(0)
    assert list(sampler) == [batch.numpy().tolist() for batch in loader]


@pytest.mark.parametrize("tail, sizes", [("drop", [16] * 6), ("even", [15] * 5 + [14] * 2),
                                         ("pad", [16] * 7)])
def test_a_batch_sampler_has_the_tails_of_a_loader(tail, sizes):
    assert [len(numbers) for numbers in ps.torch.BatchSampler(103, 16, tail=tail)] == sizes


def test_a_batch_sampler_rejects_empty_shares_and_unsized_data():
    with pytest.raises(ps.ConfigError, match="empty"):
        ps.torch.BatchSampler(17, 16, world=4, rank=0, empty="refuse")
    with pytest.raises(ps.ConfigError, match="no len"):
        ps.torch.BatchSampler(iter([1]), 16)


def test_a_batch_sampler_resumes_from_its_state():
    sampler = ps.torch.BatchSampler(103, 16, seed=7)
    loop = iter(DataLoader(Squares(), batch_sampler=sampler))
    for _ in range(3):
        next(loop)
    state = sampler.state_dict()
    expected = [numbers.tolist() for _, numbers in loop]
    later = ps.torch.BatchSampler(103, 16, seed=7)
    later.load_state_dict(state)
    later.set_epoch(0)
    assert list(later) == expected


def test_a_state_counts_received_batches_and_not_prefetched_ones():
    sampler = ps.torch.BatchSampler(103, 16, seed=7)
    loop = iter(DataLoader(Squares(), batch_sampler=sampler, num_workers=2))
    for _ in range(2):
        next(loop)
    state = sampler.state_dict(received=2)
    expected = [numbers.tolist() for _, numbers in loop]
    later = ps.torch.BatchSampler(103, 16, seed=7)
    later.load_state_dict(state)
    assert list(later) == expected
    with pytest.raises(ps.ConfigError, match="only 7"):
        sampler.state_dict(received=8)


@pytest.mark.parametrize("workers", [0, 1])
def test_shares_match_the_batches_of_a_dataloader(workers):
    sampler = ps.torch.BatchSampler(103, 16, seed=7, world=3, rank=2)
    with pytest.raises(ps.ConfigError, match="no epoch has begun"):
        next(sampler.shares())
    loader = DataLoader(Squares(), batch_sampler=sampler, num_workers=workers)
    for epoch in range(4):
        steps = 0
        pairs = zip(loader, sampler.shares()) if epoch % 2 else zip(sampler.shares(), loader)
        for pair in pairs:
            (_, numbers), share = pair if epoch % 2 else pair[::-1]
            assert share.numpy().tolist() == numbers.tolist() and share.epoch == epoch
            steps += 1
        assert steps == 7


# The mean that DDP averages


def exact_mean(world, tail, count=103):
    """The mean over processes of the loss of each backward(), and that of a single process."""
    values = torch.arange(count, dtype=torch.float64) ** 2
    loops = [ps.Loader(ps.range(count).shuffle(seed=7).batch(16), world=world, rank=rank,
                       tail=tail) for rank in range(world)]
    whole = ps.Loader(ps.range(count).shuffle(seed=7).batch(16), world=1, rank=0,
                      tail=None if tail == "pad" else tail)
    for one, *shares in zip(whole, *loops):
        means = [ps.torch.weighted_mean(values[share.torch()], share) for share in shares]
        expected = values[one.torch()].mean()
        yield (sum(means) / world - expected).abs().item() / expected.item()


@pytest.mark.parametrize("tail", ["short", "even", "pad", "drop", "wrap"])
@pytest.mark.parametrize("world", [1, 2, 3, 4, 8, 9])
def test_the_mean_over_processes_is_the_mean_over_samples(world, tail):
    assert max(exact_mean(world, tail)) < 1e-14


def test_losses_of_several_dimensions_are_averaged_within_a_row():
    batch = next(iter(ps.Loader(table().batch(16), world=2, rank=0)))
    losses = torch.rand(8, 3, 2, dtype=torch.float64)
    assert torch.allclose(ps.torch.weighted_mean(losses, batch), losses.mean(), rtol=1e-15)


def test_a_scalar_loss_is_accepted_if_no_row_is_padding():
    full, *_, tail = ps.Loader(ps.range(103).batch(16), world=2, rank=0)
    assert ps.torch.weighted_mean(torch.tensor(3.0), full).item() == 3.0
    assert ps.torch.weighted_mean(torch.tensor(7.0), tail).item() == pytest.approx(8.0)
    *_, padded = ps.Loader(ps.range(103).batch(16), tail="pad")
    with pytest.raises(ps.ConfigError, match="9 are padding"):
        ps.torch.weighted_mean(torch.tensor(3.0), padded)


def test_an_empty_share_takes_part_with_a_gradient_of_zero():
    *_, share = ps.Loader(ps.range(17).batch(16), world=2, rank=1)
    assert len(share) == 0
    weight = torch.ones(1, requires_grad=True)
    ps.torch.weighted_mean(share.torch() * weight, share).backward()
    assert weight.grad.tolist() == [0.0]


def test_a_loss_of_another_shape_or_type_raises():
    batch = next(iter(ps.Loader(ps.range(103).batch(16))))
    with pytest.raises(ps.ConfigError, match=r"\(5,\) for a batch of 16 rows"):
        ps.torch.weighted_mean(torch.zeros(5), batch)
    with pytest.raises(TypeError, match="float, not a tensor"):
        ps.torch.weighted_mean(0.5, batch)
    with pytest.raises(TypeError, match="int64"):
        ps.torch.weighted_mean(torch.zeros(16, dtype=torch.int64), batch)


# DDP


def run_example(processes, *arguments):
    environment = {name: value for name, value in os.environ.items() if name != "RANK"}
    environment.update(OMP_NUM_THREADS="1", PYTHONPATH=os.pathsep.join(sys.path))
    launch = [] if processes == 1 else ["-m", "torch.distributed.run", "--standalone",
                                        f"--nproc_per_node={processes}"]
    done = subprocess.run([sys.executable, *launch, EXAMPLE, *map(str, arguments)], check=False,
                          env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def weights_in(path):
    return torch.cat([each.flatten() for each in torch.load(path)["model"].values()])


@pytest.fixture(scope="module")
def one_process(tmp_path_factory):
    path = tmp_path_factory.mktemp("ddp") / "one.pt"
    run_example(1, "--checkpoint", path)
    return weights_in(path)


@pytest.mark.parametrize("processes, tail", [(2, "short"), (3, "short"), (3, "pad")])
def test_ddp_learns_the_weights_of_one_process(one_process, processes, tail, tmp_path):
    run_example(processes, "--checkpoint", tmp_path / "weights.pt", "--tail", tail)
    assert (weights_in(tmp_path / "weights.pt") - one_process).abs().max() < 1e-12


def test_ddp_stops_on_two_processes_and_resumes_with_three(one_process, tmp_path):
    run_example(2, "--checkpoint", tmp_path / "weights.pt", "--stop-after", 10)
    run_example(3, "--checkpoint", tmp_path / "weights.pt", "--resume")
    assert (weights_in(tmp_path / "weights.pt") - one_process).abs().max() < 1e-12


def test_the_world_comes_from_the_process_group(tmp_path, monkeypatch):
    import torch.distributed as dist
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0,
                            world_size=1)
    try:
        assert ps.Loader(ps.range(10).batch(4)).plan.world == 1
        monkeypatch.setenv("WORLD_SIZE", "2")
        with pytest.raises(ps.ConfigError, match="WORLD_SIZE=2"):
            ps.Loader(ps.range(10).batch(4))
        assert ps.Loader(ps.range(10).batch(4), world=2, rank=1).plan.rank == 1
    finally:
        dist.destroy_process_group()
