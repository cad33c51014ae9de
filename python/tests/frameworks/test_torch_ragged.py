"""Ragged fields as torch's nested tensors: the same rows, and usable in layers."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402

import penstock as ps  # noqa: E402

WIDTH = 8
pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")


def ragged_batches(lengths, *, width=0, size=5, **options):
    """Batches of rows of these lengths, as `ps.Ragged` fields; values are distinct."""
    shape = (sum(lengths), width) if width else (sum(lengths),)
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    rows = ps.from_ragged(values, np.cumsum([0, *lengths]))
    spec = {"tokens": ps.Field("float32", (None, *shape[1:]))}  # ragged in every batch
    loader = ps.Loader(rows.map(lambda x: {"tokens": x}, spec=spec).batch(size), **options)
    return [batch["tokens"] for batch in loader]


def lengths_of(seed, count=13):
    lengths = np.random.default_rng(seed).integers(0, 12, count)
    lengths[seed % count] = 0  # an empty row is somewhere
    return lengths.tolist()


@pytest.mark.parametrize("width", [0, WIDTH])
@pytest.mark.parametrize("seed", range(5))
def test_a_nested_tensor_has_the_rows_and_offsets(seed, width):
    seen = []
    for ragged in ragged_batches(lengths_of(seed), width=width):
        nested = ragged.torch_nested()
        assert nested.layout == torch.jagged and nested.dtype == torch.float32
        rows = [row.numpy() for row in nested.unbind()]
        assert all(map(np.array_equal, rows, ragged)) and len(rows) == len(ragged)
        assert np.array_equal(nested.offsets().numpy(), ragged.cu_seqlens)
        assert ragged.cu_seqlens.dtype == np.int32
        assert ragged.torch().cu_seqlens.tolist() == ragged.cu_seqlens.tolist()
        assert nested.values().data_ptr() == ragged.values.__array_interface__["data"][0]
        seen += [len(row) for row in rows]
    assert seen == lengths_of(seed)


@pytest.mark.parametrize("width", [0, WIDTH])
@pytest.mark.parametrize("seed", range(5))
def test_torch_pads_as_to_padded_does(seed, width):
    for ragged in ragged_batches(lengths_of(seed), width=width):
        padded = torch.nested.to_padded_tensor(ragged.torch_nested(), -1)
        assert np.array_equal(padded.numpy(), ragged.to_padded(-1))
        assert np.array_equal(ragged.torch().to_padded(-1).numpy(), ragged.to_padded(-1))


def test_shares_of_all_processes_have_the_rows_of_one():
    (whole,) = ragged_batches(lengths_of(3), size=13)
    shares = [ragged_batches(lengths_of(3), size=13, world=3, rank=rank)[0] for rank in range(3)]
    rows = [row for share in shares for row in share.torch_nested().unbind()]
    assert all(map(np.array_equal, rows, whole)) and len(rows) == len(whole) == 13


def test_a_share_without_rows_is_a_nested_tensor_without_rows():
    # 2 rows on 3 processes
    (share,) = ragged_batches([4, 2], size=2, world=3, rank=2)
    assert len(share) == 0 and share.torch_nested().shape[0] == 0


def test_gradients_of_a_linear_layer_are_those_of_padded_rows():
    torch.manual_seed(0)
    layer = torch.nn.Linear(WIDTH, 3)
    for ragged in ragged_batches(lengths_of(1), width=WIDTH):
        layer(ragged.torch_nested() / 100).values().square().sum().backward()
        of_nested = layer.weight.grad.clone()
        layer.zero_grad()
        outputs = layer(torch.from_numpy(ragged.to_padded()) / 100)
        there = torch.arange(outputs.shape[1]) < torch.from_numpy(ragged.lengths)[:, None]
        outputs[there].square().sum().backward()
        assert torch.allclose(of_nested, layer.weight.grad, rtol=1e-5)
        layer.zero_grad()


def test_attention_over_a_nested_tensor_is_attention_within_rows():
    for ragged in ragged_batches(lengths_of(2), width=WIDTH):
        heads = ragged.torch_nested().unflatten(-1, (2, WIDTH // 2)).transpose(1, 2) / 100
        attended = F.scaled_dot_product_attention(heads, heads, heads).transpose(1, 2).flatten(-2)
        for row, result in zip(ragged, attended.unbind(), strict=True):
            alone = torch.from_numpy(row / 100).unflatten(-1, (2, WIDTH // 2)).transpose(0, 1)
            expected = F.scaled_dot_product_attention(alone, alone, alone).transpose(0, 1)
            assert torch.allclose(result, expected.flatten(-2), atol=1e-5)


def test_rows_with_two_open_sizes_are_no_nested_tensor():
    images = ps.range(3).map(lambda i: np.zeros((i + 1, 2 * i + 1)))
    (batch,) = ps.Loader(images.batch(3))
    with pytest.raises(ps.ConfigError, match="to_padded"):
        batch.numpy().torch_nested()
