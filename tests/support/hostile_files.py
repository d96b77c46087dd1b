"""Damage to files, the same for the same seed, and what reading them may do."""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
from safetensors import safe_open
from safetensors.numpy import save_file

import mipl
from mipl.errors import MIPLError
from mipl.persistence import _digest

#: Values of every kind that JSON has, in the place of others.
ODD = [
    None, True, 0, -1, 1, 7, 2**31, 2**63, 10**30, 0.5, 1e308, float("nan"), float("inf"), "", "x", "\0", "\ud800",
    "all", "string", [], [None], [0], [1, 1], [-1], ["a"], ["a", 1], ["a", "a"], [["a"]], {}, {"a": 1}, [2**62] * 3,
]  # fmt: skip


def dataset(plain: bool = False) -> mipl.MIPLDataset:
    """Six bags with all that a file may hold; `plain` ones need no line of metadata in a text file."""
    rng = np.random.default_rng(5)
    sizes = [1, 3, 2, 4, 1, 2]
    mask = rng.random((6, 3)) < 0.5
    mask[np.arange(6), rng.integers(0, 3, 6)] = True
    mask[:3] |= np.eye(3, dtype=bool)
    if plain:
        bags = mipl.Bags(rng.normal(size=(13, 4)).astype(np.float32), np.cumsum([0, *sizes]))
        return mipl.MIPLDataset(bags, mask, classes=["ant", "bee", "cat"], labels=np.argmax(mask, axis=1))
    wide = np.column_stack([mask[:, :1], np.zeros(6, dtype=bool), mask[:, 1:]])  # "zzz" is nobody's candidate
    return mipl.MIPLDataset(
        mipl.Bags(
            rng.normal(size=(13, 4)).astype(np.float32), np.cumsum([0, *sizes]), (2, 2), ["width", "h", "a,b", "größe"]
        ),
        wide,
        classes=["cat", "zzz", "ant", "bee"],
        labels=np.argmax(wide, axis=1),
        instance_labels=rng.integers(-1, 5, 13),
        bag_ids=["b1", "b2", "b3", "7", "größe", "b=6"],
        groups=[0, 0, 1, 1, 2, 2],
        name="hostile",
    )


# -------------------------------------------------------------------- damage to bytes


def flipped(content: bytes, rng: np.random.Generator) -> bytes:
    """One bit is another."""
    changed = bytearray(content)
    changed[int(rng.integers(len(changed)))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def truncated(content: bytes, rng: np.random.Generator) -> bytes:
    """The end is missing."""
    return content[: int(rng.integers(len(content)))]


def overwritten(content: bytes, rng: np.random.Generator) -> bytes:
    """Some bytes, near each other or not, are others; or a number of 32 bits is very large, negative or zero."""
    changed = bytearray(content)
    if rng.random() < 0.5:
        for place in rng.integers(len(changed), size=int(rng.integers(1, 5))):
            changed[place] = int(rng.integers(256))
    else:
        place = int(rng.integers(max(1, len(changed) - 4)))
        number = int(rng.choice([0, -1, 2**31 - 1, -(2**31), 2**24, 65536]))
        changed[place : place + 4] = struct.pack("<i", number)
    return bytes(changed)


def moved(content: bytes, rng: np.random.Generator) -> bytes:
    """A part stands elsewhere, is there twice, is missing, or is zero."""
    start, stop = sorted(rng.integers(len(content), size=2).tolist())
    stop = min(stop, start + 200)
    part, rest = content[start:stop], content[:start] + content[stop:]
    place = int(rng.integers(len(rest) + 1))
    return [
        rest[:place] + part + rest[place:],
        content[:place] + part + content[place:],
        rest,
        content[:start] + bytes(stop - start) + content[stop:],
    ][int(rng.integers(4))]


DAMAGE: list[Callable[[bytes, np.random.Generator], bytes]] = [flipped, truncated, overwritten, moved]


# -------------------------------------------------------------------- other metadata, well formed


def forged(path: Path, rng: np.random.Generator) -> None:
    """Write a Parquet, Feather or text file again with one odd value in its metadata or one odd column."""
    (_forged_text if path.suffix in (".csv", ".jsonl") else _forged_arrow)(path, rng)


def _odd_metadata(extra: dict[str, Any], rng: np.random.Generator) -> Any:
    if rng.random() < 0.1:
        return ODD[int(rng.integers(len(ODD)))]
    keys = [*extra, "format", "classes", "background", "instance_shape", "feature_names", "name", "weights", "bag_id"]
    extra[keys[int(rng.integers(len(keys)))]] = ODD[int(rng.integers(len(ODD)))]
    return extra


def _forged_arrow(path: Path, rng: np.random.Generator) -> None:
    is_parquet = path.suffix == ".parquet"
    table = pq.read_table(path) if is_parquet else pa.feather.read_table(path, memory_map=False)
    extra = json.loads(table.schema.metadata[b"mipl"])
    if rng.random() < 0.4:
        table = _odd_column(table, rng)
    else:
        table = table.replace_schema_metadata({"mipl": json.dumps(_odd_metadata(extra, rng))})
    if is_parquet:
        pq.write_table(table, path)
    else:
        with path.open("wb") as file:
            pa.feather.write_feather(table, file)


def _odd_column(table: pa.Table, rng: np.random.Generator) -> pa.Table:
    m = table.num_rows
    columns = [
        pa.nulls(m), pa.array([b"\xff"] * m), pa.array([2**64 - 1] * m, pa.uint64()), pa.array([0.5] * m),
        pa.array([float("nan")] * m), pa.array([True] * m), pa.array([[]] * m, pa.list_(pa.int64())),
        pa.array([[[1.0]]] * m), pa.array([[None]] * m, pa.list_(pa.float32())), pa.array([[[None]]] * m),
        pa.array([{"a": 1}] * m), pa.array(["1"] * m), pa.array(range(m)), pa.array([[7, -9]] * m),
        pa.array([None, *["x"] * (m - 1)]), pa.array([{"a": None}] * m), pa.array([[["x"]]] * m),
        pa.array([[[("a", 1)]]] * m, pa.list_(pa.map_(pa.string(), pa.int8()))),
        pa.array([[("a", 1)]] * m, pa.map_(pa.string(), pa.int8())),
    ]  # fmt: skip
    place = int(rng.integers(table.num_columns))
    return table.set_column(place, table.column_names[place], columns[int(rng.integers(len(columns)))])


def _forged_text(path: Path, rng: np.random.Generator) -> None:
    first, _, rest = path.read_text(encoding="utf-8").partition("\n")
    mark = "# mipl "
    if path.suffix == ".csv":
        extra = json.loads(first.removeprefix(mark))
        line = f"{mark}{json.dumps(_odd_metadata(extra, rng))}"
    else:
        extra = json.loads(first)["mipl"]
        line = json.dumps({"mipl": _odd_metadata(extra, rng)})
    path.write_text(f"{line}\n{rest}", encoding="utf-8")


# -------------------------------------------------------------------- models, re-signed


def resigned(path: Path, rng: np.random.Generator) -> None:
    """Change one array or one value of a model file, and sign it so that its checksum fits."""
    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    header = json.loads(metadata["mipl_model"])
    if rng.random() < 0.6:
        name = sorted(arrays)[int(rng.integers(len(arrays)))]
        arrays[name] = _odd_tensor(arrays[name], rng)
        if rng.random() < 0.7:  # a forger who thinks of the description, too
            for node in _nodes(header["model"]):
                if node.get("name") == name:
                    node["shape"], node["dtype"] = list(arrays[name].shape), arrays[name].dtype.str
                    node["finite"] = False
    else:
        places = list(_places(header["model"]))
        owner, key = places[int(rng.integers(len(places)))]
        odd = [value for value in ODD if value != "\ud800"]
        owner[key] = odd[int(rng.integers(len(odd)))]
    text = json.dumps(header)
    save_file(arrays, path, {**metadata, "mipl_model": text, "sha256": _digest(text, arrays)})


def _odd_tensor(old: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    with np.errstate(all="ignore"):
        found = [
            np.atleast_1d(old)[:0], old.reshape(-1), old[..., None], np.atleast_1d(old)[:1], old.astype(np.int8),
            old.astype(np.float16),
            np.full(old.shape, np.nan), np.full(old.shape, np.inf), np.zeros_like(old), old * 0 - 7,
            np.concatenate([np.atleast_1d(old)] * 2), old.astype(bool), np.full(old.shape, 1e30),
            np.atleast_1d(old)[..., :1],
        ]  # fmt: skip
    return np.ascontiguousarray(found[int(rng.integers(len(found)))])


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        yield tree
    for value in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _nodes(value)


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every value in a tree, by what holds it and its key."""
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in pairs:
        yield tree, key
        yield from _places(value)


# -------------------------------------------------------------------- what happened


class Tally:
    """How often what happened, and the first case of what must not."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.counts: Counter[str] = Counter()
        self.first: dict[str, str] = {}

    def count(self, what: str, example: object = "") -> None:
        self.counts[what] += 1
        self.first.setdefault(what, str(example))

    def of(self, read: Callable[[], bool | None], example: object) -> None:
        """Count what reading does; it gives whether the result is right, None where nobody can know."""
        try:
            right = read()
        except MIPLError as error:
            self.count("refused" if len(str(error).splitlines()) == 1 else "refused in several lines", error)
        except Exception as error:
            self.count("raw error", f"{example}: {type(error).__name__}: {error}")
        else:
            self.count({None: "read", True: "right", False: "wrong"}[right], example)

    def check(self, most_wrong: int = 0) -> None:
        """Print the counts, and fail where something happened that must not; at most so many may be wrong."""
        total = sum(self.counts.values())
        shown = ", ".join(f"{count} {what}" for what, count in sorted(self.counts.items()))
        print(f"{self.name}: {total} tried, {shown}")
        allowed = {"raw error": 0, "wrong": most_wrong, "refused in several lines": 0, "lost": 0, "not finite": 0}
        bad = [what for what, most in allowed.items() if self.counts[what] > most]
        met = {what: (self.counts[what], self.first[what]) for what in bad}
        assert not met, f"{self.name}: {met}"
