"""``mipl fit``: learn a model from data set files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mipl.cli.assignments import parse_assignments
from mipl.cli.cluster import SchedulerOption, cluster_client
from mipl.cli.decisions import DecisionsOption, decided
from mipl.cli.estimator import DEFAULT_METHOD, MethodOption, ParamOption, fit_method
from mipl.cli.files import BackgroundOption, FilesArgument, Reading, reads_files
from mipl.cli.output import JsonOption, QuietOption, print_json, say

if TYPE_CHECKING:
    from mipl.dataset import MIPLDataset
    from mipl.scanning.scan import Scan

__all__ = ["fit"]

#: What `mipl.scan` takes of the options of files; the others are for other files than it reads.
_SCAN_OPTIONS = ("bag", "candidates", "label", "features", "ignore", "instance_id", "missing", "candidates_sep")


@reads_files
def fit(
    file: FilesArgument,
    reading: Reading,
    out: Annotated[Path, typer.Option("--out", "-o", help="Model file to write.")],
    method: MethodOption = DEFAULT_METHOD,
    param: ParamOption = None,
    background: BackgroundOption = None,
    decisions: DecisionsOption = None,
    scheduler: SchedulerOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Fit a method on bags with candidate labels and save the model.

    Parquet, Feather and Arrow files that would take more than half of the free memory are read block by block, and so
    are all of them with --scheduler.
    """
    from mipl.io.atomic import check_writable

    check_writable(out)
    reading.refuse_overwriting(file, [out], decisions)
    silent = quiet or json
    if scheduler is not None:
        _check_method(method, param)
    in_memory_only = background is not None or decisions is not None
    data: MIPLDataset | Scan | None = None
    if not in_memory_only:
        data = _scan(file, reading, _fits_in_blocks(method, param), scheduler is not None, silent)
    if data is None:
        data, _ = decided(reading.load(file, silent, background=background).dataset, decisions, silent)
    with cluster_client(scheduler) as client:
        model, seconds = fit_method(data, method, param, silent, client)
    model.save(out)
    if json:
        print_json({"method": model.name, "bags": len(data), "seconds": round(seconds, 3), "model": str(out)})
    say(f"{model.name}: fitted on {len(data):,} bags in {seconds:.2f} s, written to {out}", silent)


def _fits_in_blocks(method: str, params: list[str] | None) -> bool:
    from mipl.cluster_classifier import ClusterClassifier
    from mipl.registry import make

    model = make(method, **parse_assignments(params))
    return isinstance(model, ClusterClassifier) and model.fits_in_blocks


def _check_method(method: str, params: list[str] | None) -> None:
    from mipl.errors import ParameterError

    if not _fits_in_blocks(method, params):
        raise ParameterError(
            f"{method} cannot be fitted on a cluster; leave --scheduler out, or use --method BagGP, or --method MIPLGP "
            "with --param engine=low-rank"
        )


def _scan(files: list[str], reading: Reading, in_blocks: bool, on_cluster: bool, quiet: bool) -> Scan | None:
    """The files as a scan where they are better not loaded: on a cluster, or where memory is short for them."""
    from mipl.compute import free_memory
    from mipl.io.border import file_format
    from mipl.io.sources import expand
    from mipl.scanning.chunks import is_large
    from mipl.scanning.files import SUFFIXES
    from mipl.scanning.scan import scan

    given = reading.given()
    if "-" in files or set(given) - set(_SCAN_OPTIONS) or given.get("missing") is not None:
        return None
    if not on_cluster and not (is_large(files) and in_blocks):
        return None
    if not all(file_format(path) in [(suffix, "") for suffix in SUFFIXES] for path in expand(files)):
        return None
    found = scan(files, **given)
    size = 4.0 * found.n_instances * found.n_features
    if not on_cluster and size <= free_memory() / 2:
        return None
    why = "for the cluster" if on_cluster else "which is more than half of the free memory"
    say(f"{size / 2**30:.2f} GiB of features, {why}: the files are read block by block", quiet)
    if found.remark is not None:
        say(found.remark, quiet)
    return found
