"""Seconds and peak memory to build each of the paper's five data sets from local raw files, beside their figures.

Every data set is built in a process of its own with an empty cache folder, then once more with what the first build
left there (the features of the newsgroup posts). The peak is that of the whole process, Python and NumPy included.

Run: MIPL_DATA=... python benchmarks/datasets.py
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time

from measure import print_table

GOAL_SECONDS, GOAL_MIB = 30, 2048


def main() -> None:
    from mipl.datasets import paper_characteristics

    rows = []
    for name, paper in paper_characteristics().items():
        with tempfile.TemporaryDirectory() as cache:
            first, again = (_in_own_process(name, cache) for _ in range(2))
        ours = first["summary"]
        within = first["seconds"] < GOAL_SECONDS and first["peak_mib"] < GOAL_MIB
        shape = [f"{ours[column]:,} / {paper[column]:,}" for column in ("bags", "instances")]
        rows.append((name, first["seconds"], again["seconds"], first["peak_mib"], "yes" if within else "NO", *shape))
    print_table(
        "the five data sets from local raw files",
        (
            "data set",
            "build s",
            "again s",
            "peak MiB",
            f"< {GOAL_SECONDS} s, 2 GiB",
            "bags / paper",
            "instances / paper",
        ),
        rows,
    )


def _in_own_process(name: str, cache: str) -> dict:
    environment = os.environ | {"MIPL_CACHE": cache}
    done = subprocess.run(
        [sys.executable, __file__, name], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout)


def _build(name: str) -> None:
    start = time.perf_counter()
    import mipl  # a part of what a user waits for

    summary = mipl.load(name, r=1, seed=0).summary()
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "peak_mib": peak, "summary": summary}))


if __name__ == "__main__":
    _build(sys.argv[1]) if len(sys.argv) > 1 else main()
