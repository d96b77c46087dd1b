"""Published train/test splits of MNIST-MIPL, and any other folder of ``index*.mat`` files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mipl.datasets.sources.files import RemoteFile, download, github, local_file
from mipl.errors import DataError
from mipl.io.arrays import read_split

__all__ = ["PUBLISHED", "read_splits"]


class PublishedSplits(NamedTuple):
    """Ten files index1.mat .. index10.mat beside the code of a paper."""

    repository: str
    commit: str
    sha256: tuple[str, ...]


#: The splits of the MIPLGP paper (250/250) and of its successors DEMIPL, ELIMIPL, MIPLMA, FastMIPL, ... (350/150).
PUBLISHED = {
    "mnist_5050": PublishedSplits(
        repository="tangw-seu/MIPLGP",
        commit="096a7c4f3d227b22af24abf621a5c2663e1b56b7",
        sha256=(
            "3adb2d310582d98724d58bf594c560cd136d3bf29171dbda499c23a8e2ba52e8",
            "b93a2b8fde24689e365c64c8a2056047c3ff24fbf2b1be970733fcc42f7dc608",
            "0fe8a334d6a2e8da91656b1c9f10fa48d8504479c01260b131e285d0f60dc06d",
            "3acfd8450896f9587d828ee9785704420f19e1bced7db6fbdc2d53faa3ee0421",
            "e095651eaac9b7d30b724fddfdca65a1172e36f94373f8de08be27be5fecbc70",
            "0a105a354fa0e6b70faabf26f99bb6c3a9f16f561520c6ee93efdbda9d19ca7c",
            "09fdd246f87d8364ae9d4af5bf0a427a588c3d80623e935b34260630c2be882b",
            "d0be253da7f9811399f64fa1747119b182bff2742f8642aafc50b92939ac3eee",
            "06971d3025523386b1c55019227007209a90409b41cf69f607bf91610d9b4781",
            "2f58eb07527e2297ab12101b012994234135819f724c3c22b7602958aa09aa98",
        ),
    ),
    "mnist_7030": PublishedSplits(
        repository="tangw-seu/DEMIPL",
        commit="5f19ee123382ce9890177511970bb526557275e0",
        sha256=(
            "d4abdbea948f8ebb30e9dde6203da9a6e1f7232bb95db628e2dd2b6d4cb11a22",
            "75f4598ec51194f67cae6481bd81cb4922d3dd4be11788985c6ec99fdf4a9614",
            "7f043887ede42b360cb0fd04f1b880d44430d6db9ace836fec2ac1d94dd2d329",
            "278fce1db1d10751d81ce2cd8caf3ced9bf4d56e0779712ebedc19894f79c20d",
            "048998230c154d13765f10d108c24bcc0762a476a20fcd01c83fce02f93b2c4f",
            "726f63d70b6546b75c5899cd4877e3cace731a7a070b36afb41efcbbdf4095a4",
            "b9bc13c120bda413b52c195f8f85c909836592c7ddc25a954ca593b28c004d5b",
            "dec235a56be902ec50bddfec71b00533824ef1760660a557269920752b706697",
            "27daf9cbdf2860ee95500abe3d829d4912522f910ca4de79154c5a31c440eb9f",
            "b65de7b32a165bb2cad40abad7785c33fa0689102894168108edd99f9f913bf0",
        ),
    ),
}


def read_splits(name: str | Path, n_bags: int) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """The (training, test) bags of each split, counted from 0; each split must part all `n_bags` bags."""
    files = _published(str(name)) if str(name) in PUBLISHED else _in_folder(Path(name))
    pairs = [read_split(file) for file in files]
    for file, (train, test) in zip(files, pairs, strict=True):
        covered = len(train) + len(test)
        if covered != n_bags or max(train.max(), test.max()) >= n_bags:
            raise DataError(f"{file} splits {covered} bags, the data set has {n_bags}; it belongs to another data set")
    return pairs


def _published(name: str) -> list[Path]:
    source = PUBLISHED[name]
    files = [
        RemoteFile(
            f"splits/{name}/index{number}.mat",
            sha256,
            github(source.repository, source.commit, f"data/MNIST_MIPL/index/index{number}.mat"),
        )
        for number, sha256 in enumerate(source.sha256, start=1)
    ]
    local = [local_file(file.path, file.sha256) for file in files]
    return [path for path in local if path is not None] if all(local) else download(files)


def _in_folder(folder: Path) -> list[Path]:
    files = [file for file in folder.glob("index*.mat") if re.fullmatch(r"index\d+", file.stem)]
    if not files:
        raise DataError(f"{folder} is neither a published split ({', '.join(PUBLISHED)}) nor a folder with index*.mat")
    return sorted(files, key=lambda file: int(file.stem.removeprefix("index")))
