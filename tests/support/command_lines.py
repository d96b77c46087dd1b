"""Every command with every path that it takes, and a folder in which these command lines run.

In a command line ``<name`` is a file that is read and ``>name`` one that is written.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np
from hostile_files import dataset
from PIL import Image

import mipl
from mipl.bench import Store, load_suite
from mipl.bench.store import Outcome
from mipl.bench.store.csv_file import write_csv

SUITE = """
name = "made"
datasets = ["digits"]
splits = 3
scores = ["accuracy"]
methods = ["PL-kNN", { method = "PL-kNN", label = "near", params = { n_neighbors = 1 } }]
"""


class Line(NamedTuple):
    words: str
    also: tuple[str, ...] = ()  #: files that are read or written without being named


FIT = "fit -m PL-kNN --out >new.mipl"
ANSWERS = "--out >p.csv --instances >i.csv"
LINES = [
    Line(f"{FIT} <d.csv --decisions <z.csv"),
    Line(f"{FIT} <bare.csv --table <t.csv"),
    Line(f"{FIT} in", also=("<in/1.csv", "<in/deep/2.parquet")),
    Line(f"{FIT} in/*.csv", also=("<in/1.csv",)),
    Line(f"{FIT} photos --patch 4", also=("<photos/a.png", "<photos/names.csv")),
    Line(f"predict <m.mipl <d.csv {ANSWERS}"),
    Line(f"predict <m.mipl <d.csv --chunk 4 {ANSWERS}"),
    Line(f"predict <m.mipl <bare.csv --table <t.csv {ANSWERS}"),
    Line(f"predict <m.mipl in/*.csv {ANSWERS}", also=("<in/1.csv",)),
    Line(f"explain <m.mipl <d.csv {ANSWERS}"),
    Line("explain <m.mipl <bare.csv --table <t.csv --out >p.html --instances >i.csv"),
    Line(f"resolve <d.csv --decisions <z.csv -m PL-kNN {ANSWERS} --report >p.html"),
    Line(f"resolve <bare.csv --table <t.csv --model <m.mipl {ANSWERS} --report >p.html"),
    Line("data build digits --out >new.npz"),
    Line("data show <bare.csv --table <t.csv --out >p.png"),
    Line("data show photos --patch 4 --out >p.png", also=("<photos/a.png",)),
    Line("bench run <made.toml --store >made.sqlite --any-code"),
    Line("bench import <made.csv --store >new.sqlite"),
    Line("bench table <made.toml --store <made.sqlite --out >p.txt"),
    Line("bench figure <made.toml overview --store <made.csv --out >p.svg --out >p.png"),
    Line(
        "bench report <made.toml --store <made.sqlite --page >p.md --results res",
        also=("<res/discussion.md", ">res/results.csv", ">res/environment.json"),
    ),
    Line("demo --out new -m PL-kNN"),
    Line("check <bare.csv --table <t.csv"),
    Line("check <d.csv --model <m.mipl"),
    Line("info <m.mipl"),
    Line("data info <bare.csv --table <t.csv"),
    Line("bench status <made.toml --store <made.sqlite"),
    Line("data list"),
    Line("methods"),
]


def make_folder(folder: Path) -> Path:
    """Make all files that the lines read."""
    ds = dataset(plain=True)
    ds.save(folder / "d.csv")
    mipl.make("PL-kNN").fit(ds).save(folder / "m.mipl")
    for place in ("in/deep", "photos", "res", "sub"):
        (folder / place).mkdir(parents=True)
    ds[:3].save(folder / "in" / "1.csv")
    ds[3:].save(folder / "in" / "deep" / "2.parquet")
    for i, name in enumerate("ab"):
        Image.fromarray(np.arange(i, i + 64, dtype=np.uint8).reshape(8, 8)).save(folder / "photos" / f"{name}.png")
    (folder / "photos" / "names.csv").write_text("bag_id,candidates\na.png,ant|bee\nb.png,bee\n")
    with (folder / "d.csv").open(newline="") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    given = {row["bag_id"]: row["candidates"] for row in rows}
    features = [name for name in rows[0] if name not in ("bag_id", "candidates", "label")]
    bare = [[row["bag_id"], *(row[name] for name in features)] for row in rows]
    write(folder / "bare.csv", [["bag_id", *features], *bare])
    write(folder / "t.csv", [["bag_id", "candidates"], *given.items()])
    write(folder / "z.csv", [["bag_id", "decision"], [rows[0]["bag_id"], rows[0]["candidates"].split("|")[0]]])
    (folder / "made.toml").write_text(SUITE)
    (folder / "res" / "discussion.md").write_text("What a person has to say.\n")
    with Store(folder / "made.sqlite") as opened:
        opened.begin_run({"processors": 1, "platform": "made up"})
        with opened.transaction():
            for place, cell in load_suite(str(folder / "made.toml")).cells().items():
                opened.claim(cell)
                scores = {"accuracy": 0.5 + place.split / 10}
                opened.finish(cell, Outcome(scores=scores, fit_seconds=1.0, predict_seconds=1.0))
        write_csv(opened.records(), folder / "made.csv")
    return folder


def write(path: Path, rows: list[list[str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
