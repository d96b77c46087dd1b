"""Landmarks and the median distance."""

from __future__ import annotations

import torch

from mipl.gp.landmarks import kmeans_landmarks, median_distance


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_landmarks_are_the_distinct_rows_where_these_are_few() -> None:
    X = torch.tensor([[0.0, 1.0], [2.0, 3.0], [0.0, 1.0], [4.0, 5.0]]).repeat(50, 1)
    Z, counts = kmeans_landmarks(X, 10, generator())
    rows = dict(zip(map(tuple, Z.tolist()), counts.tolist(), strict=True))
    assert rows == {(0.0, 1.0): 100, (2.0, 3.0): 50, (4.0, 5.0): 50}


def test_landmarks_lower_the_quantisation_error_of_random_rows() -> None:
    X = torch.randn(2000, 2, generator=generator())
    Z, _ = kmeans_landmarks(X, 20, generator(1))
    chosen = X[torch.randperm(2000, generator=generator(1))[:20]]
    assert torch.cdist(X, Z).amin(dim=1).square().mean() < 0.8 * torch.cdist(X, chosen).amin(dim=1).square().mean()


def test_weights_are_copies_of_the_rows() -> None:
    rows = torch.randn(40, 2, generator=generator())
    weights = torch.arange(40) % 3 + 1
    copies = rows.repeat_interleave(weights, dim=0)
    assert median_distance(rows, generator(), weights=weights) == median_distance(copies, generator())
    Z, counts = kmeans_landmarks(rows, 50, generator(), weights=weights)
    nearest = torch.cdist(rows, Z).argmin(dim=1)
    assert torch.equal(counts[nearest], weights.float())


def test_a_landmark_is_the_weighted_mean_of_its_rows() -> None:
    rows = torch.tensor([[0.0], [1.0], [10.0], [12.0]])
    weights = torch.tensor([3.0, 1.0, 0.5, 1.5])
    found = [kmeans_landmarks(rows, 2, generator(seed), weights=weights) for seed in range(8)]
    apart = {(Z.flatten().sort().values.tolist()[0], *Z.flatten().sort().values.tolist()[1:]) for Z, _ in found}
    assert (0.25, 11.5) in apart


def test_the_length_scale_ignores_duplicates() -> None:
    X = torch.tensor([[0.0], [3.0]]).repeat(100, 1)
    assert median_distance(X, generator()) == 3.0
    assert median_distance(torch.zeros(10, 2), generator()) == 1.0


def test_a_row_far_away_changes_neither_the_landmarks_of_the_others_nor_their_distance() -> None:
    X = torch.randn(500, 2, generator=generator())
    expected = median_distance(X, generator())
    error = torch.cdist(X, kmeans_landmarks(X, 20, generator(1))[0]).amin(dim=1).square().mean()
    for size, far in ((1.0, 1e8), (1e-25, -1.0)):
        wild = torch.cat([size * X, torch.full((1, 2), far)])
        assert abs(median_distance(wild, generator()) / size - expected) < 0.1
        Z, counts = kmeans_landmarks(wild, 20, generator(1))
        assert counts.sum() == 501
        near = Z[Z[:, 0].abs() < 10 * size] / size
        assert torch.cdist(X, near).amin(dim=1).square().mean() < 1.2 * error
        assert Z.dtype == counts.dtype == X.dtype
