"""Front ends: what each does to instances, and which one is chosen."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import normalize

from mipl.bags import Bags
from mipl.compute import shared_by, use_one_thread
from mipl.errors import DataError
from mipl.features import ConvKMeans, UnitRange, UnitRows, choose_features


def images(n: int = 60, side: int = 20, seed: int = 0) -> np.ndarray:
    """Bars across a square, horizontal in even rows and vertical in odd ones, at random places."""
    rng = np.random.default_rng(seed)
    stack = 0.05 * rng.standard_normal((n, side, side))
    for i, place in enumerate(rng.integers(4, side - 4, n)):
        stack[i][(slice(None), place) if i % 2 else place] += 1
    return stack.reshape(n, -1).astype(np.float32)


def one_bag(X: np.ndarray, shape: tuple[int, ...] | None = None) -> Bags:
    return Bags(X, np.array([0, len(X)]), shape)


def test_unit_rows_are_scikit_learns_and_keep_zero_rows() -> None:
    X = np.abs(np.random.default_rng(0).standard_normal((20, 5))).astype(np.float32)
    X[3] = 0
    np.testing.assert_allclose(UnitRows().fit_transform(X), normalize(X), rtol=1e-6)
    np.testing.assert_allclose(UnitRows(power=0.5).fit_transform(X), normalize(np.sqrt(X)), rtol=1e-6)
    np.testing.assert_allclose(UnitRows(power=0.5).fit_transform(-X), -normalize(np.sqrt(X)), rtol=1e-6)


def test_convolutional_features_tell_the_direction_of_a_bar_wherever_it_is() -> None:
    transformer = ConvKMeans(image_shape=(20, 20), n_filters=16).fit(images(seed=1))
    X = transformer.transform(images())
    assert X.shape == (60, transformer.n_outputs)
    means = np.stack([X[::2].mean(axis=0), X[1::2].mean(axis=0)])
    nearest = ((X[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    assert np.array_equal(nearest, np.arange(60) % 2)


def test_convolutional_features_ignore_the_brightness_and_contrast_of_all_images() -> None:
    transformer = ConvKMeans(image_shape=(20, 20), n_filters=8).fit(images())
    bright = ConvKMeans(image_shape=(20, 20), n_filters=8).fit(3 * images() + 2)
    np.testing.assert_allclose(bright.transform(3 * images() + 2), transformer.transform(images()), atol=2e-3)


def test_the_brightness_of_an_image_among_others_shows_in_its_coarse_pixels() -> None:
    dark, X = images(), np.concatenate([images(), images() + 1])
    blind = ConvKMeans(image_shape=(20, 20), n_filters=8, coarse=0).fit(X)
    seeing = ConvKMeans(image_shape=(20, 20), n_filters=8).fit(X)
    np.testing.assert_allclose(blind.transform(dark + 1), blind.transform(dark), atol=2e-3)
    np.testing.assert_allclose(seeing.transform(X)[:, :-25], blind.transform(X), atol=1e-6)
    pixels = seeing.transform(X)[:, -25:]
    assert pixels[:60].max() < pixels[60:].min()
    assert seeing.transform(X).shape[1] == seeing.n_outputs == blind.n_outputs + 25


def test_filters_and_coarse_pixels_count_alike_whatever_the_unit_of_pixels() -> None:
    for X in (images(n=200), 1000 * images(n=200)):
        variances = ConvKMeans(image_shape=(20, 20), n_filters=8).fit_transform(X).var(axis=0)
        assert variances[-25:].sum() == pytest.approx(variances[:-25].sum(), rel=1e-3)


def test_an_image_far_brighter_than_those_of_training_is_as_one_at_their_edge() -> None:
    transformer = ConvKMeans(image_shape=(20, 20), n_filters=8).fit(images())
    white = np.full((1, 400), images().max(), dtype=np.float32)
    np.testing.assert_array_equal(transformer.transform(1e9 * white)[:, -25:], transformer.transform(white)[:, -25:])


def test_images_that_are_flat_have_finite_features() -> None:
    X = np.repeat(np.linspace(0, 1, 30, dtype=np.float32)[:, None], 400, axis=1)
    for flat in (X, np.zeros_like(X)):
        assert np.isfinite(ConvKMeans(image_shape=(20, 20), n_filters=4).fit_transform(flat)).all()


def test_convolutional_features_of_an_image_do_not_depend_on_the_others() -> None:
    transformer = ConvKMeans(image_shape=(20, 20), n_filters=8).fit(images())
    pale = np.concatenate([0.01 * images()[:1], images()])
    np.testing.assert_allclose(transformer.transform(pale[:1]), transformer.transform(pale)[:1], atol=1e-6)


def test_colour_images_have_filters_over_all_channels() -> None:
    X = np.random.default_rng(0).random((20, 16 * 16 * 3)).astype(np.float32)
    transformer = ConvKMeans(image_shape=(16, 16, 3), n_filters=4).fit(X)
    assert transformer.filters_.shape == (4, 6 * 6 * 3)
    features = transformer.transform(X)
    assert np.isfinite(features).all()
    assert features.shape[1] == transformer.n_outputs == 4 * 2 * 2 + 4 * 4 * 3


@pytest.mark.parametrize("shape", [(20, 21), (5, 80)])
def test_images_of_the_wrong_shape_are_refused(shape: tuple[int, int]) -> None:
    with pytest.raises(DataError, match="shape"):
        ConvKMeans(image_shape=shape).fit(images())


def test_the_front_end_follows_from_the_instances() -> None:
    rng = np.random.default_rng(0)
    assert isinstance(choose_features(one_bag(rng.standard_normal((30, 4)))), UnitRange)
    text = ["wrens sing at dawn", "owls hunt at night", "owls and wrens nest", "hawks hunt by day"] * 5
    of_text = choose_features(one_bag(TfidfVectorizer().fit_transform(text).toarray()))
    assert isinstance(of_text, UnitRows)
    assert of_text.power == 0.5
    assert isinstance(choose_features(one_bag(images(), (20, 20))), Pipeline)
    assert isinstance(choose_features(one_bag(rng.random((30, 64)), (8, 8)))[-1], PCA)


def test_images_that_threads_share_get_the_same_bits() -> None:
    X = np.concatenate([images(seed=seed) for seed in range(4)])
    expected = ConvKMeans(image_shape=(20, 20), n_filters=8).fit(X).transform(X)
    with ThreadPoolExecutor(3, initializer=use_one_thread) as pool, shared_by(pool.map):
        found = ConvKMeans(image_shape=(20, 20), n_filters=8).fit(X).transform(X)
    assert len(X) > 64
    np.testing.assert_array_equal(found, expected)
