"""Columns of images as Hugging Face's `datasets` writes them: their pixels are those of the images."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from PIL import Image

import mipl
from mipl.errors import DataError
from mipl.io.options import Columns
from mipl.scanning.chunks import read_chunks

IMAGES = np.random.default_rng(0).integers(0, 256, (4, 16, 24, 3), np.uint8)
TAGS = [["cat", "dog"], ["cat", "dog"], ["dog"], ["dog"]]


def record(pixels: np.ndarray, path: str | None = None) -> dict[str, Any]:
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, "PNG")
    return {"bytes": None if path else content.getvalue(), "path": path}


def pixels_of(ds: mipl.MIPLDataset) -> np.ndarray:
    return np.rint(255 * ds.bags.instances.reshape(-1, *ds.bags.instance_shape)).astype(int)


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_an_image_per_row_is_an_instance(tmp_path: Path, suffix):
    table = pa.table({"bag_id": ["a", "a", "b", "b"], "image": [record(p) for p in IMAGES], "candidates": TAGS})
    path = tmp_path / f"x{suffix}"
    (pq.write_table if suffix == ".parquet" else pyarrow.feather.write_feather)(table, path)
    ds = mipl.load(path)
    assert ds.bags.sizes.tolist() == [2, 2]
    np.testing.assert_array_equal(pixels_of(ds), IMAGES)
    with pytest.raises(DataError, match="a column of images, which a scan does not decode"):
        mipl.scan(path)
    (chunk,) = read_chunks([path], Columns())
    assert chunk.dataset.equals(ds)


def test_a_list_of_images_per_row_is_a_bag(tmp_path: Path):
    records = [[record(p) for p in IMAGES[:3]], [record(IMAGES[3])]]
    pq.write_table(
        pa.table({"bag_id": ["a", "b"], "instances": records, "candidates": TAGS[1:3]}), tmp_path / "x.parquet"
    )
    ds = mipl.load(tmp_path / "x.parquet")
    assert ds.bags.sizes.tolist() == [3, 1]
    np.testing.assert_array_equal(pixels_of(ds), IMAGES)


def test_an_image_that_is_a_bag_is_cut_as_one_in_a_folder(tmp_path: Path):
    folder = tmp_path / "photos"
    folder.mkdir()
    names = [f"p{i}.png" for i in range(4)]
    for name, pixels in zip(names, IMAGES, strict=True):
        Image.fromarray(pixels).save(folder / name)
    (folder / "t.csv").write_text(
        "file,candidates\n" + "".join(f"{n},{'|'.join(t)}\n" for n, t in zip(names, TAGS, strict=True))
    )
    # Two with their bytes, two that name a file beside the table.
    records = [
        record(p, f"photos/{name}" if i > 1 else None) for i, (name, p) in enumerate(zip(names, IMAGES, strict=True))
    ]
    pq.write_table(pa.table({"bag_id": names, "image": records, "candidates": TAGS}), tmp_path / "x.parquet")
    ds, expected = mipl.load(tmp_path / "x.parquet", patch=8), mipl.load(folder, patch=8)
    np.testing.assert_array_equal(ds.bags.instances, expected.bags.instances)
    assert ds.bags.instance_shape == (8, 8, 3)
    assert ds.candidate_sets() == expected.candidate_sets()


def test_what_is_no_image_is_told(tmp_path: Path):
    def load(records: list[Any], **options: Any) -> mipl.MIPLDataset:
        table = pa.table({"bag_id": ["a", "a"], "image": records, "candidates": TAGS[:2]})
        pq.write_table(table, tmp_path / "x.parquet")
        return mipl.load(tmp_path / "x.parquet", **options)

    with pytest.raises(DataError, match="image 1 cannot be read as an image"):
        load([record(IMAGES[0]), {"bytes": b"no image", "path": None}])
    with pytest.raises(DataError, match=r"image 1 is the file 'lost\.png', which is not here"):
        load([record(IMAGES[0]), {"bytes": None, "path": "lost.png"}])
    with pytest.raises(DataError, match="image 1 has 8 x 24 x 3 pixels, the first 16 x 24 x 3; pass size=N"):
        load([record(IMAGES[0]), record(IMAGES[1][:8])])
    assert load([record(IMAGES[0]), record(IMAGES[1][:8])], size=8).bags.instance_shape == (8, 8, 3)
    pq.write_table(pa.table({"bag_id": ["a"], "x": [1.0], "candidates": TAGS[:1]}), tmp_path / "y.parquet")
    with pytest.raises(DataError, match="has no images"):
        mipl.load(tmp_path / "y.parquet", patch=8)


def test_a_photograph_is_turned_as_its_camera_says(tmp_path: Path):
    (tmp_path / "photos").mkdir()
    turned = Image.fromarray(IMAGES[0])
    exif = turned.getexif()
    exif[0x0112] = 6  # to be turned clockwise to be seen upright
    turned.save(tmp_path / "photos" / "a.png", exif=exif)
    Image.fromarray(IMAGES[1]).rotate(90, expand=True).save(tmp_path / "photos" / "b.png")
    (tmp_path / "photos" / "t.csv").write_text("file,candidates\na,cat|dog\nb,dog\n")
    ds = mipl.load(tmp_path / "photos", patch=8)
    assert ds.bags.sizes.tolist() == [6, 6]
    upright = np.rot90(IMAGES[0], -1)
    np.testing.assert_array_equal(pixels_of(ds)[0], upright[:8, :8])
