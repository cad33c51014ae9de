"""What README says torch does with data that does not divide, checked with torch itself."""

import torch
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def test_103_samples_on_3_processes_are_105_in_torch():
    data = TensorDataset(torch.arange(103))
    ids = [int(each) for rank in range(3)
           for (part,) in DataLoader(data, 6, sampler=DistributedSampler(data, 3, rank))
           for each in part]
    assert len(ids) == 105 and len(set(ids)) == 103


def test_103_samples_on_3_processes_are_103_here():
    import penstock as ps

    ds = ps.range(103).shuffle(seed=7).batch(16)
    ids = [int(each) for rank in range(3) for batch in ps.Loader(ds, world=3, rank=rank)
           for each in batch.numpy()]
    assert sorted(ids) == list(range(103))
