"""Folders of images: patches put together again are the image."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from io_support import same_folder
from PIL import Image

import mipl
from mipl.errors import DataError
from mipl.io.options import Columns
from mipl.loading import load_with_ids


def save(path: Path, pixels: np.ndarray) -> None:
    path.parent.mkdir(exist_ok=True, parents=True)
    Image.fromarray(pixels.astype(np.uint8)).save(path)


def photos(folder: Path, shape: tuple[int, ...], n: int = 4) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    pictures = [rng.integers(0, 256, shape) for _ in range(n)]
    for i, pixels in enumerate(pictures):
        save(folder / f"p{i}.png", pixels)
    (folder / "names.csv").write_text(
        "file;candidates;label\np0.png;cat|dog;cat\np1;dog;\np2;cat;cat\np3;cat|dog;dog\n"
    )
    return pictures


@given(
    down=st.integers(1, 3),
    across=st.integers(1, 3),
    rest=st.integers(0, 5),
    patch=st.integers(1, 6),
    colour=st.booleans(),
)
@same_folder
def test_patches_put_together_are_the_image(tmp_path: Path, down, across, rest, patch, colour):
    rest %= patch  # pixels beyond whole patches, which the last ones overlap to cover
    folder = tmp_path / f"{down}{across}{rest}{patch}{colour}"
    channels = (3,) if colour else ()
    height, width = down * patch + rest, across * patch
    pictures = photos(folder, (height, width, *channels))
    loaded = load_with_ids(folder, Columns(patch=patch))
    ds = loaded.dataset
    assert ds.bags.instance_shape == (patch, patch, *channels)
    assert ds.bags.sizes.tolist() == [(down + (rest > 0)) * across] * 4
    places = [tuple(map(int, name[1:].split("x"))) for name in loaded.instance_ids[: ds.bags.sizes[0]]]
    assert [y for y, x in places if x == 0][:down] == list(range(0, down * patch, patch))
    for bag, pixels in zip(ds.bags, pictures, strict=True):
        whole = np.full(pixels.shape, np.nan)
        for tile, (y, x) in zip(bag.reshape(-1, patch, patch, *channels), places, strict=True):
            whole[y : y + patch, x : x + patch] = tile
        np.testing.assert_allclose(whole, pixels / 255, atol=1e-6)


def test_candidates_and_labels_come_from_the_table_in_the_folder(tmp_path: Path):
    photos(tmp_path / "photos", (4, 4))
    ds = mipl.load(tmp_path / "photos", patch=2)
    assert ds.bag_ids.tolist() == ["p0.png", "p1.png", "p2.png", "p3.png"]
    assert ds.candidate_sets() == [["cat", "dog"], ["dog"], ["cat"], ["cat", "dog"]]
    assert ds.label_names() == ["cat", None, "cat", "dog"]


def test_one_folder_per_bag_has_its_images_as_instances(tmp_path: Path):
    rng = np.random.default_rng(0)
    for name, n in (("bird", 3), ("fish", 2)):
        for k in range(n):
            save(tmp_path / "bags" / name / f"{k}.png", rng.integers(0, 256, (5, 4, 3)))
    (tmp_path / "t.csv").write_text("animal,what\nbird,a|b\nfish,b\n")
    ds = mipl.load(tmp_path / "bags", table=tmp_path / "t.csv", bag="animal", candidates="what")
    assert ds.bag_ids.tolist() == ["bird", "fish"]
    assert ds.bags.sizes.tolist() == [3, 2]
    assert ds.bags.instance_shape == (5, 4, 3)
    save(tmp_path / "bags" / "fish" / "big.png", rng.integers(0, 256, (9, 9, 3)))
    with pytest.raises(DataError, match=r"has 9 x 9 x 3 pixels.*size=N"):
        mipl.load(tmp_path / "bags", table=tmp_path / "t.csv", bag="animal", candidates="what")
    resized = mipl.load(tmp_path / "bags", table=tmp_path / "t.csv", bag="animal", candidates="what", size=8)
    assert resized.bags.instance_shape == (8, 8, 3)


def test_grey_images_among_coloured_ones_become_colour(tmp_path: Path):
    photos(tmp_path / "photos", (4, 4, 3))
    grey = np.arange(16).reshape(4, 4) * 10
    save(tmp_path / "photos" / "p0.png", grey)
    ds = mipl.load(tmp_path / "photos", patch=4)
    np.testing.assert_allclose(ds.bags[0].reshape(4, 4, 3), np.repeat(grey[..., None], 3, axis=2) / 255, atol=1e-6)


def test_what_cannot_be_read_is_named(tmp_path: Path):
    photos(tmp_path / "photos", (4, 4))
    with pytest.raises(DataError, match="less than one patch of 32"):
        mipl.load(tmp_path / "photos")
    (tmp_path / "photos" / "names.csv").write_text("file,candidates\nq0,cat|dog\n")
    with pytest.raises(DataError, match="names a bag of"):
        mipl.load(tmp_path / "photos", patch=2)
    (tmp_path / "photos" / "names.csv").unlink()
    with pytest.raises(DataError, match="no table of candidates; pass table=FILE"):
        mipl.load(tmp_path / "photos", patch=2)
    assert mipl.load(tmp_path / "photos", patch=2, unlabelled=["a", "b"]).candidates.all()
    (tmp_path / "photos" / "p9.png").write_bytes(b"no image")
    with pytest.raises(DataError, match=r"p9\.png cannot be read as an image"):
        mipl.load(tmp_path / "photos", patch=2)


def test_an_image_whose_name_is_not_utf_8_is_a_bag_whose_id_can_be_written(tmp_path: Path):
    photos(tmp_path / "photos", (8, 8))
    (tmp_path / "photos" / "p1.png").rename(tmp_path / "photos" / os.fsdecode(b"p\xff.png"))
    ds = mipl.load(tmp_path / "photos", patch=4, unlabelled=["cat", "dog"])
    assert ds.bag_ids.tolist() == ["p0.png", "p2.png", "p3.png", "p\\udcff.png"]
    assert mipl.load(ds.save(tmp_path / "x.parquet")).equals(ds)
