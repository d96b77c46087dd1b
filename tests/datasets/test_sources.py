"""Raw files: checked, fetched from mirrors, put together from their original formats, and clear errors when not."""

from __future__ import annotations

import gzip
import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat
from sklearn.utils import Bunch

import mipl
from mipl import DataError
from mipl.datasets import birdsong, mnist, newsgroups, sival
from mipl.datasets.sources import files as sources
from mipl.datasets.sources import images

CONTENT = b"some raw bytes\n" * 100
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def no_raw_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache folder, and no $MIPL_DATA."""
    monkeypatch.delenv("MIPL_DATA", raising=False)
    monkeypatch.setenv("MIPL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A web server on this machine: its address, and the folder that it serves."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

    folder = tmp_path / "served"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_port}", folder
        httpd.shutdown()


# ---------------------------------------------------------------- downloads


def test_the_next_mirror_is_asked_when_one_is_down_or_delivers_something_else(no_raw_data: Path, server: tuple) -> None:
    address, folder = server
    (folder / "wrong.gz").write_bytes(b"a login page")
    (folder / "right.gz").write_bytes(gzip.compress(CONTENT))
    urls = [f"{address}/missing", f"{address}/wrong.gz", f"{address}/right.gz"]
    (path,) = sources.download([sources.RemoteFile("set/raw.bin", SHA256, urls)])
    assert path == no_raw_data / "set" / "raw.bin"
    assert path.read_bytes() == CONTENT
    assert [p.name for p in path.parent.iterdir()] == ["raw.bin"]  # no leftovers of the failed ones


def test_a_cached_file_is_not_fetched_again_but_checked(no_raw_data: Path) -> None:
    path = no_raw_data / "raw.bin"
    path.parent.mkdir()
    path.write_bytes(CONTENT)
    file = sources.RemoteFile("raw.bin", SHA256, [])
    assert sources.download([file]) == [path]
    path.write_bytes(CONTENT[:-1])
    with pytest.raises(DataError, match=rf"raw\.bin is damaged.* expected sha256 {SHA256}"):
        sources.download([file])


def test_without_a_network_the_error_names_the_sources_and_the_manual_steps(no_raw_data: Path) -> None:
    files = [sources.RemoteFile(f"set/{name}", SHA256, [f"http://127.0.0.1:1/{name}"]) for name in ("a", "b")]
    with pytest.raises(DataError) as error:
        sources.download(files)
    steps = [
        f"127.0.0.1:1/{name}\n    save it as {no_raw_data / 'set' / name}  (sha256 {SHA256})" for name in ("a", "b")
    ]
    for part in ("127.0.0.1:1/a: no answer", "By hand", *steps, "MIPL_DATA"):
        assert part in str(error.value)


@pytest.mark.parametrize("name", ["mnist", "fmnist", "birdsong", "sival", "newsgroups"])
def test_every_data_set_gives_the_manual_steps_offline(
    name: str, no_raw_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def offline(*args: object, **kwargs: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr("pooch.HTTPDownloader.__call__", offline)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", offline)
    monkeypatch.setattr("sklearn.datasets.fetch_20newsgroups", offline)
    with pytest.raises(DataError, match=r"(?s)no network.*By hand: .*MIPL_DATA"):
        mipl.load(name)


# ---------------------------------------------------------------- local files


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("mnist", "mnist/mnist.npz"),
        ("fmnist", "fmnist/fmnist.npz"),
        ("birdsong", "birdsong/birdsong.npz"),
        ("sival", "sival/sival.npz"),
        ("newsgroups", "newsgroups/newsgroups.jsonl.gz"),
    ],
)
def test_a_damaged_raw_file_is_named_with_the_expected_sha256(
    name: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIPL_DATA", str(tmp_path))
    path = tmp_path / file
    path.parent.mkdir()
    path.write_bytes(b"PK\x03\x04 not the real thing")
    with pytest.raises(DataError) as error:
        mipl.load(name)
    assert str(path) in str(error.value)
    assert "expected sha256" in str(error.value)


def test_a_truncated_split_file_is_named(raw_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "splits" / "mnist_5050"
    target.mkdir(parents=True)
    for file in (raw_data / "splits" / "mnist_5050").iterdir():
        (target / file.name).write_bytes(file.read_bytes())
    (target / "index3.mat").write_bytes((target / "index3.mat").read_bytes()[:-7])
    monkeypatch.setenv("MIPL_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"index3\.mat is damaged.*expected sha256"):
        mipl.datasets.from_bags(np.zeros((500, 1, 1)), np.arange(500) % 5).splits("mnist_5050")


# ---------------------------------------------------------------- the original formats give the same arrays


def idx(array: np.ndarray) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()


def test_images_from_the_original_files_and_from_openml_are_those_of_the_local_file(
    raw_data: Path, server: tuple, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = images.load_images(mnist.SOURCE)
    address, folder = server
    parts = (X[:60000].reshape(-1, 28, 28), y[:60000], X[60000:].reshape(-1, 28, 28), y[60000:])
    for name, part in zip(images._PARTS, parts, strict=True):
        (folder / f"{name}.gz").write_bytes(gzip.compress(idx(part), compresslevel=1))
    monkeypatch.delenv("MIPL_DATA")
    monkeypatch.setenv("MIPL_CACHE", str(tmp_path / "cache"))
    from_mirror = images.load_images(mnist.SOURCE._replace(mirrors=("http://127.0.0.1:1", address)))
    assert all(map(np.array_equal, from_mirror, (X, y)))

    asked = []

    def fetch_openml(name: str, **options: object) -> Bunch:
        asked.append(name)
        return Bunch(data=X.astype(np.int64), target=y.astype(str).astype(object))

    monkeypatch.setenv("MIPL_CACHE", str(tmp_path / "another"))
    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    from_openml = images.load_images(mnist.SOURCE._replace(mirrors=("http://127.0.0.1:1",)))
    assert all(map(np.array_equal, from_openml, (X, y)))
    assert asked == ["mnist_784"]

    X[5, 300] ^= 1
    with pytest.raises(DataError, match="not the expected ones"):
        images.load_images(mnist.SOURCE._replace(mirrors=("http://127.0.0.1:1",)))


def test_birdsong_from_the_original_text_is_that_of_the_local_file(
    raw_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, recording, species = birdsong._load()
    features = tmp_path / "hja_birdsong_features.txt"
    np.savetxt(features, np.column_stack([recording + 1, X]), delimiter=",", fmt="%.9g", header="bag_id,f")
    labels = tmp_path / "hja_birdsong_instance_labels.txt"
    np.savetxt(labels, np.column_stack([recording + 1, species + 1]), delimiter=",", fmt="%d", header="bag_id,label")
    monkeypatch.delenv("MIPL_DATA")
    monkeypatch.setattr(birdsong, "download", lambda files: [tmp_path / Path(file.path).name for file in files])
    assert all(map(np.array_equal, birdsong._load(), (X, recording, species)))


def test_sival_from_the_original_matrices_is_that_of_the_local_file(
    raw_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = sival._load()
    raw = sources.read_npz(raw_data / "sival" / "sival.npz")
    file_and_bag = np.array([text.split(":") for text in raw["source_bag"]], dtype=int)
    for number in range(1, 9):
        rows = file_and_bag[:, 0] == number
        table = np.column_stack([file_and_bag[rows, 1], raw["X"][rows], raw["y"][rows] + 1.0])
        savemat(tmp_path / f"SIVAL{number}.mat", {"data": table})
    monkeypatch.delenv("MIPL_DATA")
    monkeypatch.setattr(sival, "download", lambda files: [tmp_path / Path(file.path).name for file in files])
    assert all(map(np.array_equal, sival._load(), expected))


def test_sival_bags_hold_the_neighbours_of_their_segments(raw_data: Path) -> None:
    """Each block of six difference features, subtracted from the own six, is a row of the same bag."""
    ds = mipl.load("sival")
    for bag in ds.bags[::50]:
        own = bag[:, :6]
        for side in range(4):
            neighbour = own - bag[:, 6 * (side + 1) : 6 * (side + 2)]
            distance = np.abs(neighbour[:, None] - own[None]).max(axis=2).min(axis=1)
            assert distance.max() < 1e-3


def test_newsgroups_from_scikit_learns_fetcher_keep_the_order_of_the_raw_file(
    raw_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import json

    with gzip.open(raw_data / "newsgroups" / "newsgroups.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    names = sorted({row["category"] for row in rows})

    def fetch(subset: str, shuffle: bool, data_home: Path) -> Bunch:
        part = [row for row in rows if row["subset"] == subset][::-1]
        return Bunch(
            data=[row["text"] for row in part],
            target=np.array([names.index(row["category"]) for row in part]),
            target_names=names,
            filenames=np.array([f"/x/{row['category']}/{row['id']}" for row in part]),
        )

    monkeypatch.setattr("sklearn.datasets.fetch_20newsgroups", fetch)
    messages, y = newsgroups._fetch()
    assert (messages, y) == newsgroups._read(raw_data / "newsgroups" / "newsgroups.jsonl.gz")
