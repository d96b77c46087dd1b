"""Random data sets for the tests of files, and what a damaged file may do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import mipl
from mipl.bags import Bags
from mipl.dataset import MIPLDataset
from mipl.errors import DataError

SUFFIXES = [".parquet", ".npz", ".csv", ".mat", ".jsonl", ".feather"]
same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
name_text = st.text(
    st.characters(codec="utf-8", exclude_characters='|"', exclude_categories=("Cc", "Zl", "Zp", "Zs", "Cs")),
    min_size=1,
    max_size=6,
)
#: Feature names may hold blanks and bars, and may be what files without names call their columns.
feature_text = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters='"', exclude_categories=("Cc", "Cs")), max_size=6),
    st.sampled_from(["f0", "f1", "f2", "f3", "Bag_id", "p(x)", "a,b", "# mipl {}"]),
)


#: Class names that look like a name with a weight, in part.
vote_text = st.sampled_from(["a", "a:1", "a:1:2", "a:b", "b:2", ":3", "b: 1"])


@st.composite
def datasets(draw: st.DrawFn, more: bool = False) -> MIPLDataset:
    """Draw any data set; with `more`, one that may have weights, a background class and labels outside candidates."""
    q = draw(st.integers(2, 5))
    classes = draw(
        st.one_of(
            st.lists(st.integers(-3, 40), min_size=q, max_size=q, unique=True),
            st.lists(name_text | vote_text, min_size=q, max_size=q, unique=True),
        )
    )
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    m, n = len(sizes), sum(sizes)
    shape = draw(st.sampled_from([(1,), (3,), (2, 2)]))
    d = int(np.prod(shape))
    any_float32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
    flat = draw(hnp.arrays(np.float32, (n, d), elements=any_float32))
    mask = np.array([draw(st.lists(st.booleans(), min_size=q, max_size=q).filter(any)) for _ in range(m)])
    truth = [draw(st.sampled_from([*(range(q) if more else np.flatnonzero(row).tolist()), -1])) for row in mask]
    positive = st.floats(0, allow_infinity=False, exclude_min=True) | st.integers(1, 50).map(float)
    weights = np.where(mask, draw(hnp.arrays(np.float64, (m, q), elements=positive)), 0)
    ids = draw(
        st.one_of(
            st.none(),
            st.lists(st.integers(-(2**60), 2**60), min_size=m, max_size=m, unique=True),
            st.lists(name_text, min_size=m, max_size=m, unique=True),
        )
    )
    names = draw(
        st.one_of(
            st.none(),
            st.just([f"f{j}" for j in range(d)]),
            st.lists(feature_text, min_size=d, max_size=d, unique=True),
        )
    )
    return MIPLDataset(
        bags=Bags(flat, np.concatenate([[0], np.cumsum(sizes)]), shape, names),
        candidates=mask,
        labels=[classes[c] if c >= 0 else None for c in truth] if draw(st.booleans()) else None,
        classes=classes,
        instance_labels=draw(st.one_of(st.none(), hnp.arrays(np.int64, n, elements=st.integers(-1, q)))),
        bag_ids=ids,
        name=draw(st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=5)),
        candidate_weights=weights if more and draw(st.booleans()) else None,
        background=draw(st.sampled_from([None, *classes])) if more else None,
    )


def load_or_refuse(path: Path) -> None:
    """A damaged file is a data set still, or a clear error."""
    try:
        ds = mipl.load(path)
    except DataError:
        return
    assert isinstance(ds, MIPLDataset)
