"""Segment operations against padded dense ones."""

from __future__ import annotations

import pytest
import torch

from mipl.deep import attention as attention_module
from mipl.deep.attention import (
    GatedAttention,
    Segments,
    attended_scores,
    segment_softmax,
    segment_standardize,
    segment_sum,
)

SIZES = torch.tensor([3, 1, 5, 2])


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def padded(values: torch.Tensor, fill: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Values (n, k) as (b, longest, k), and which entries are real."""
    real = torch.arange(int(SIZES.max())) < SIZES[:, None]
    dense = torch.full((*real.shape, values.shape[1]), fill, dtype=values.dtype)
    dense[real] = values
    return dense, real


@pytest.fixture
def values() -> torch.Tensor:
    return torch.randn(int(SIZES.sum()), 4, dtype=torch.float64, generator=generator()) * 3


def test_segment_softmax_equals_a_padded_softmax(values):
    dense, real = padded(values, -torch.inf)
    expected = dense.softmax(dim=1)[real]
    torch.testing.assert_close(segment_softmax(values, Segments.of_sizes(SIZES)), expected)


def test_segment_sum_equals_a_padded_sum(values):
    dense, _ = padded(values, 0)
    torch.testing.assert_close(segment_sum(values, Segments.of_sizes(SIZES)), dense.sum(dim=1))


def test_gradient_of_segment_softmax_equals_differences(values):
    segments = Segments.of_sizes(SIZES)
    values.requires_grad_()
    assert torch.autograd.gradcheck(lambda v: segment_softmax(v, segments), (values,))


@pytest.mark.parametrize("n_rows", [1, 4, 100])  # one bag at a time, two, all
def test_attended_scores_equal_the_formula_and_so_do_their_gradients(monkeypatch, values, n_rows):
    monkeypatch.setattr(attention_module, "_ROWS_AT_A_TIME", n_rows)
    segments = Segments.of_sizes(SIZES)
    inputs = [values, *torch.randn(2, 4, 3, dtype=values.dtype, generator=generator(1))]
    for tensor in inputs:
        tensor.requires_grad_()
    h, attending, scoring = inputs
    bags, attention = attended_scores(*inputs, segments)
    expected = segment_softmax(h @ attending, segments)
    torch.testing.assert_close(attention, expected)
    torch.testing.assert_close(bags, segment_sum(expected * (h @ scoring), segments))
    assert not attention.requires_grad
    assert torch.autograd.gradcheck(lambda *given: attended_scores(*given, segments)[0], inputs)


def test_segment_softmax_survives_scores_beyond_the_range_of_exp():
    scores = torch.tensor([[1000.0], [1001.0], [-1000.0]])
    attention = segment_softmax(scores, Segments.of_sizes(torch.tensor([2, 1])))
    torch.testing.assert_close(attention[:2, 0], torch.tensor([0.0, 1.0]).softmax(0))
    assert attention[2] == 1


def test_scores_are_standardised_bag_by_bag_and_those_of_single_instances_become_zero(values):
    standard = segment_standardize(values, Segments.of_sizes(SIZES), 1e-8)
    for bag, raw in zip(standard.split(SIZES.tolist()), values.split(SIZES.tolist()), strict=True):
        if len(bag) == 1:
            assert (bag == 0).all()
        else:
            torch.testing.assert_close(bag, (raw - raw.mean(dim=0)) / raw.std(dim=0), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("min_deviation", [1e-8, 0.1])
def test_no_gradient_passes_through_the_deviation(values, min_deviation):
    segments = Segments.of_sizes(SIZES)
    values.requires_grad_()
    weight = torch.randn(values.shape, dtype=values.dtype, generator=generator(1))
    (segment_standardize(values, segments, min_deviation) * weight).sum().backward()
    expected = []
    for g, v in zip(weight.split(SIZES.tolist()), values.detach().split(SIZES.tolist()), strict=True):
        deviation = v.std(dim=0) if len(v) > 1 else torch.full((4,), 0.0, dtype=v.dtype)
        expected.append((g - g.mean(dim=0)) / (deviation + min_deviation))
    torch.testing.assert_close(values.grad, torch.cat(expected))


def test_a_tied_gate_has_one_matrix_and_an_untied_one_two():
    count = {tied: sum(p.numel() for p in GatedAttention(6, 3, 8, tied, generator()).parameters()) for tied in (0, 1)}
    assert count[0] - count[1] == 3 * 6 + 3


def test_the_tied_gate_multiplies_tanh_and_sigmoid_of_the_same_numbers():
    attention = GatedAttention(6, 3, 8, True, generator()).double()
    h = torch.randn(5, 6, dtype=torch.float64, generator=generator(1))
    v = h @ attention.content.weight.T + attention.content.bias
    hidden = (v.tanh() * v.sigmoid()) @ attention.hidden.weight.T + attention.hidden.bias
    expected = hidden.clamp(min=0) @ attention.out.weight.T + attention.out.bias
    torch.testing.assert_close(attention(h), expected)
