"""Bags that do not fit into memory, or on one machine.

Part "predict": a fitted BagGP predicts 300,000 instances that lie in memory, and streams as many and then 10,000,000
instances x 64 from Parquet files.

Part "fit": BagGP fits 300,000 instances in memory, and 100,000 to 3,000,000 from Parquet files, with 1 GiB for
features; where these are more, they lie in a scratch file.

Part "dask": BagGP fits 300,000 instances from Parquet files in one process with one thread, on one single-thread worker
and on two. The client, which works while workers wait for it, has as many threads as there are workers.

Every measurement is a process of its own and a row of results/scale.csv, written when it is done. A measurement that is
there is not taken again, so a run that was stopped goes on; `--again` takes those of a part anew, all in one run, as
ratios should be. "table" prints what is there and puts it into docs/scale.md.

Run: python benchmarks/scale.py predict                  # 2.6 GB of files
     python benchmarks/scale.py fit                      # 12 GB of scratch
     python benchmarks/scale.py dask
     python benchmarks/scale.py table
     python benchmarks/scale.py fit --in-memory 50000 --sizes 20000 50000 --landmarks 500 --results /tmp/small.csv
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

from scale_cases import Case, Found, measured
from scale_tables import print_tables, write_tables

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "scale.csv"
FIELDS = (*Case._fields, *Found._fields)


def read(path: Path) -> dict[Case, Found]:
    """The measurements of a file; of two of one case the later one."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {
        Case(r["part"], r["where"], int(r["instances"]), int(r["landmarks"])): Found(
            float(r["seconds"]),
            float(r["cpu_seconds"] or "nan"),
            float(r["resident_mib"]),
            int(r["cores"]),
            r["digest"],
            int(r["moved"]),
            int(r["formula"]),
        )
        for r in rows
    }  # fmt: skip


def append(path: Path, case: Case, found: Found) -> None:
    """One row more."""
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(FIELDS)
        writer.writerow([*case, *(round(v, 3) if isinstance(v, float) else v for v in found)])


def cases(part: str, given: argparse.Namespace) -> list[Case]:
    """What a part measures."""
    if part == "predict":
        where = [("memory", given.in_memory), ("files", given.in_memory), ("files", given.size or 10_000_000)]
    elif part == "fit":
        where = [("memory", given.in_memory), *(("files", n) for n in given.sizes)]
    else:
        where = [(place, given.size or 300_000) for place in ("process", "1 worker", "2 workers")]
    return [Case(part, place, n, given.landmarks) for place, n in where]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["predict", "fit", "dask", "table"], help="what is measured")
    parser.add_argument(
        "--size", type=int, help="instances that are streamed (default: 10,000,000), or fitted on Dask (300,000)"
    )
    parser.add_argument(
        "--sizes",
        type=int,
        nargs="+",
        default=[100_000, 300_000, 1_000_000, 3_000_000],
        help="instances that are fitted out of core (default: %(default)s)",
    )
    parser.add_argument(
        "--in-memory", type=int, default=300_000, help="instances that lie in memory (default: %(default)s)"
    )
    parser.add_argument("--landmarks", type=int, default=2000, help="landmarks of the model (default: %(default)s)")
    parser.add_argument("--again", action="store_true", help="take measurements anew that are there")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the file (default: results/scale.csv)")
    given = parser.parse_args()
    if given.part != "table":
        known = read(given.results)
        for case in cases(given.part, given):
            if case not in known or given.again:
                found = measured(case)
                append(given.results, case, found)
                print(f"{case.part}, {case.where}, {case.instances:,} instances: {found.seconds:.1f} s", flush=True)
    kept = {case: found for case, found in read(given.results).items() if case.landmarks == given.landmarks}
    print_tables(kept)
    if given.part == "table" and given.results == RESULTS:
        write_tables(kept, ROOT / "docs" / "scale.md")


if __name__ == "__main__":
    main()
