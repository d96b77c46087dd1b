"""Predictions from files to files: in bounded memory, and for many files with several processes that can be killed."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mipl import __version__
from mipl.base import MIPLClassifier
from mipl.clusters import check_versions, cluster_errors, completed, same
from mipl.compute import limit_torch
from mipl.errors import DataError, MIPLError, ParameterError, UnavailableError
from mipl.io.border import file_format
from mipl.io.options import Columns
from mipl.io.raw import Loaded
from mipl.io.sources import expand, files_read, read_files
from mipl.io.tables import TABLE_SUFFIXES, write_tables
from mipl.overwriting import refuse_overwriting
from mipl.persistence import load_model
from mipl.resolution import Resolution
from mipl.resolving import explain
from mipl.scanning.chunks import is_large, read_chunks

__all__ = ["Predicted", "Reading", "predict_to_file", "predict_to_folder"]

#: In the folder of the answers: one line of JSON for each file that is done.
MANIFEST = ".mipl-predict.jsonl"


class Reading(NamedTuple):
    """How files are read and answers written.

    Attributes
    ----------
    columns : Columns, what the columns of the files are, and what the model remembers of them
    chunk : int, the instances of a chunk; None decides by the size of the files
    raw : bool, whether names are written as they are, also where a spreadsheet would take them for formulas
    """

    columns: Columns
    chunk: int | None = None
    raw: bool = False


@dataclass(frozen=True)
class Predicted:
    """What was written.

    Attributes
    ----------
    source, output : str
        The file that was read, and the one that was written.
    bags : int
        The bags of the file.
    known, right : int
        Bags whose true label the file knows, and those among them that were predicted right.
    skipped : bool
        Whether the answers were there already.
    sha256 : str
        Of the content of the file, where it was predicted into a folder.
    """

    source: str
    output: str
    bags: int
    known: int
    right: int
    skipped: bool = False
    sha256: str = ""


def predict_to_file(
    model: MIPLClassifier,
    files: Sequence[str],
    output: str | Path,
    reading: Reading,
    instances: Path | None = None,
    remark: Callable[[str], None] = lambda text: None,
    evidence: bool = False,
) -> Predicted:
    """Predict the bags of files, chunk by chunk where they are large, and write the answers as they come.

    Parameters
    ----------
    model : MIPLClassifier
        A fitted model.
    files : sequence of str
        Files that are read one after the other.
    output : str or Path
        The table of answers, one row per bag; it appears whole or not at all.
    reading : Reading
        How the files are read.
    instances : Path, default=None
        A table with one row per instance, for which the files are read a second time; None for none.
    remark : callable, default=nothing is told
        Takes what a person should know about how the files were read.
    evidence : bool, default=False
        Whether each row names the instance behind its label, as `explain` does; it takes longer.
    """
    known = right = bags = 0

    def answers() -> Iterator[dict[str, list[Any]]]:
        nonlocal known, right, bags
        for part in _parts(files, reading, model):
            for text in part.remarks:
                remark(text)
            found = explain(model, part.dataset, instances=evidence)
            if evidence:
                found = replace(found, instance_ids=part.instance_ids)
            if part.has_labels and found.truth is None:  # every chunk has the same columns
                found = replace(found, truth=np.full(len(found), None, dtype=object))
            told, hits = _hits(found)
            known, right, bags = known + told, right + hits, bags + len(found)
            yield found.columns()

    def instance_answers() -> Iterator[dict[str, list[Any]]]:
        for part in _parts(files, reading, model):
            yield replace(explain(model, part.dataset), instance_ids=part.instance_ids).instance_columns()

    write_tables(answers(), output, raw=reading.raw)
    if instances is not None:
        write_tables(instance_answers(), instances, raw=reading.raw)
    return Predicted(" ".join(map(str, files)), str(output), bags, known, right)


def predict_to_folder(
    model: Path,
    files: Sequence[str],
    folder: Path,
    reading: Reading,
    jobs: int = 1,
    tell: Callable[[Predicted], None] = lambda done: None,
    client: Any = None,
) -> list[Predicted]:
    """Predict every file on its own into a file of that name in a folder.

    A file whose answers are there is skipped, if neither they nor the contents of the file, of the model and of the
    table of candidates nor the options have changed since. So a run that was killed goes on where it stopped.

    Parameters
    ----------
    model : Path
        A model file.
    files : sequence of str
        Files, patterns and folders.
    folder : Path
        Where the answers go; it is made where it does not exist. Folders below the common folder of the files are kept.
    reading : Reading
        How the files are read.
    jobs : int, default=1
        Processes that work at once.
    tell : callable, default=nothing is told
        Is called with each file as it is done or skipped.
    client : distributed.Client, default=None
        Of a Dask cluster whose workers read and write the files, which they see under the same paths; None for
        processes on this machine.

    Returns
    -------
    list of Predicted
        In the order of the files.

    Raises
    ------
    DataError
        Some file could not be predicted; the others were.
    ParameterError
        Answers would be written over a file that is read or that is no answer of an earlier run, or outside of the
        folder; nothing was predicted.
    """
    if not model.is_file():
        raise DataError(f"no such model file: {model}")
    if "-" in map(str, files):
        raise ParameterError("answers for standard input need a name: give --out a file, not a folder")
    earlier, answers = _read_manifest(folder)
    sources = [source for source in expand(files) if source.resolve() not in answers]
    if not sources:
        raise DataError(f"all of these files are answers of an earlier run in {folder}; name the files of the bags")
    targets, table = _targets(sources, folder), reading.columns.table
    refuse_overwriting([*targets.values(), folder / MANIFEST], [model, table], sources)
    for target in targets.values():
        if target.exists() and target.resolve() not in answers:
            raise ParameterError(
                f"{target} exists and is no answer of an earlier run; move it away, or choose another folder for --out"
            )
    folder.mkdir(parents=True, exist_ok=True)
    common = f"{_sha256(model)} {'' if table is None else _sha256(Path(table))} {reading!r} {__version__}"
    done: dict[Path, Predicted] = {}
    left: dict[Path, Path] = {}
    for source, target in targets.items():
        entry = earlier.get(str(target.relative_to(folder)))
        if (
            entry is not None
            and entry["key"] == _key(source, common)
            and entry["answers"] == _sha256(target)
            and entry["done"].sha256 == _sha256(source)
        ):
            done[source] = entry["done"]
            tell(done[source])
        else:
            left[source] = target
    # Before anything is written: where the folder lies among the data, the next run must not take answers for bags.
    _append(folder, [{"output": str(target.relative_to(folder))} for target in left.values()])
    failed: list[str] = []
    running = _run(model, left, reading, jobs) if client is None else _run_on_cluster(client, model, left, reading)
    for source, result in running:
        if isinstance(result, Exception):
            failed.append(str(result))
            continue
        done[source] = result
        entry = {"key": _key(source, common), "answers": _sha256(left[source]), "done": asdict(result)}
        _append(folder, [{"output": str(left[source].relative_to(folder)), **entry}])
        tell(result)
    if failed:
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        raise DataError(f"{len(failed)} of {len(targets)} files could not be predicted: {failed[0]}{more}")
    return [done[source] for source in targets]


def _parts(files: Sequence[str], reading: Reading, model: MIPLClassifier) -> Iterator[Loaded]:
    classes = model.classes_.tolist()
    if reading.chunk is not None or is_large(files):
        return read_chunks(files, reading.columns, classes, reading.chunk)
    return iter([read_files(files, reading.columns, classes)])


def _hits(found: Resolution) -> tuple[int, int]:
    """How many true labels are known, and how many of these are the predicted ones."""
    if found.truth is None:
        return 0, 0
    pairs = [(a, b) for a, b in zip(found.truth.tolist(), found.labels.tolist(), strict=True) if a is not None]
    return len(pairs), sum(a == b for a, b in pairs)


# -------------------------------------------------------------------- files and folders


def _targets(sources: list[Path], folder: Path) -> dict[Path, Path]:
    """Where the answers for each file go: .csv, .jsonl, .parquet and .xlsx stay what they are, columns are Parquet."""
    places = {source: Path(os.path.abspath(source)).parent for source in sources}  # without any ".."
    common = os.path.commonpath(places.values())
    root, targets = folder.resolve(), dict[Path, Path]()
    for source, place in places.items():
        suffix = file_format(source)[0]
        kind = suffix if suffix in TABLE_SUFFIXES else ".parquet" if suffix in (".pq", ".feather", ".arrow") else ".csv"
        stem = source.name.removesuffix(file_format(source)[1])
        target = folder / place.relative_to(common) / (Path(stem).stem + kind)
        if target in targets.values():
            raise DataError(f"{source} and another file would both be written to {target}; predict them separately")
        if root not in target.resolve().parents:
            raise ParameterError(f"a link leads from {target} out of {folder}; choose another folder for --out")
        targets[source] = target
    return targets


def _key(source: Path, common: str) -> str:
    """A digest of all that the answers depend on, but the content of the file."""
    text = f"{os.path.abspath(source)} {common}"
    return hashlib.blake2b(os.fsencode(text), digest_size=16).hexdigest()  # names of files need not be UTF-8


def _sha256(path: Path) -> str:
    """Of the content of a file, or of what is read in a folder of images; empty where there is none."""
    if path.is_dir():
        text = "".join(f"{file.relative_to(path)} {_sha256(file)}\n" for file in files_read([path]))
        return hashlib.sha256(os.fsencode(text)).hexdigest()
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_manifest(folder: Path) -> tuple[dict[str, dict[str, Any]], set[Path]]:
    """What is done, by its name in the folder, and all files of answers, also those that a killed run had begun."""
    found: dict[str, dict[str, Any]] = {}
    answers: set[Path] = set()
    try:
        lines = (folder / MANIFEST).read_bytes().splitlines()
    except OSError:
        return found, answers
    for line in lines:
        try:
            entry = json.loads(line)
            answer = (folder / entry["output"]).resolve()
            if folder.resolve() in answer.parents:  # a damaged line must not hide a file of bags elsewhere
                answers.add(answer)
            done = Predicted(**{**entry["done"], "skipped": True})
            if not all(type(count) is int for count in (done.bags, done.known, done.right)):
                continue
            found[entry["output"]] = {"key": entry["key"], "answers": entry["answers"], "done": done}
        except (ValueError, KeyError, TypeError, RecursionError):  # not done, or a line that a killed run left
            continue
    return found, answers


def _append(folder: Path, entries: list[dict[str, Any]]) -> None:
    with (folder / MANIFEST).open("a+b") as file:
        file.seek(0, os.SEEK_END)
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":  # after an unfinished line
                file.write(b"\n")
        file.write(b"".join(json.dumps(entry).encode() + b"\n" for entry in entries))


# -------------------------------------------------------------------- processes


def _run(
    model: Path, targets: dict[Path, Path], reading: Reading, jobs: int
) -> Iterator[tuple[Path, Predicted | Exception]]:
    """Predict each file, and give its result or its error as it is done."""
    if not targets:
        return
    if jobs == 1 or len(targets) == 1:
        loaded = load_model(model)
        for source, target in targets.items():
            yield source, _one(loaded, source, target, reading)
        return
    jobs = min(jobs, len(targets))
    threads = max(1, (os.cpu_count() or 1) // jobs)
    # Fresh processes: the threads of torch and Arrow do not survive a fork.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, _start_worker, (model, threads)) as pool:
        tasks: dict[Future[Predicted | Exception], Path] = {
            pool.submit(_work, source, target, reading): source for source, target in targets.items()
        }
        try:
            for task in as_completed(tasks):
                yield tasks[task], task.result()
        except BrokenProcessPool as error:
            raise UnavailableError(
                "a process that predicted was killed, perhaps for want of memory; run the same command again with "
                "fewer --jobs or a smaller --chunk: it goes on with the files that are left"
            ) from error


def _run_on_cluster(
    client: Any, model: Path, targets: dict[Path, Path], reading: Reading
) -> Iterator[tuple[Path, Predicted | Exception]]:
    """As `_run`, one task per file."""
    if not targets:
        return
    name = f"mipl-predict-{uuid.uuid4().hex[:12]}"
    advice = "use a smaller --chunk; the same command goes on with the files that are left"
    with cluster_errors(client, advice):
        check_versions(client)
        # The model is read here: a worker may not see its file, and all get the same one.
        loaded = client.submit(same, load_model(model), key=(f"{name}-model", 0), pure=False)
        futures = client.map(
            _one_on_cluster,
            [source.absolute() for source in targets],
            [target.absolute() for target in targets.values()],
            model=loaded,
            reading=reading,
            key=[(name, i) for i in range(len(targets))],
            pure=False,
        )
    source_of = {future.key: source for future, source in zip(futures, targets, strict=True)}
    for future, result in completed(client, futures, advice):
        source = source_of[future.key]
        if isinstance(result, Predicted):
            result = replace(result, source=str(source), output=str(targets[source]))
        yield source, result


def _one_on_cluster(source: Path, target: Path, model: MIPLClassifier, reading: Reading) -> Predicted | Exception:
    with limit_torch(one_thread=True):
        return _one(model, source, target, reading)


_MODEL: MIPLClassifier | None = None


def _start_worker(model: Path, threads: int) -> None:
    global _MODEL
    import torch
    from threadpoolctl import threadpool_limits

    parent = multiprocessing.parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    threadpool_limits(threads)
    torch.set_num_threads(threads)
    _MODEL = load_model(model)


def _work(source: Path, target: Path, reading: Reading) -> Predicted | Exception:
    assert _MODEL is not None
    return _one(_MODEL, source, target, reading)


def _one(model: MIPLClassifier, source: Path, target: Path, reading: Reading) -> Predicted | Exception:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        content = _sha256(source)  # first: a file that changes while it is read is predicted again by the next run
        return replace(predict_to_file(model, [str(source)], target, reading), sha256=content)
    except (MIPLError, OSError) as error:
        return error
