"""Newsgroups-MIPL: bags of posts of the 20 Newsgroups."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mipl.dataset import MIPLDataset
from mipl.datasets.sources import cache_folder, local_file, read_npz
from mipl.datasets.synthesis import from_instances
from mipl.io.atomic import atomic_path

__all__ = ["build"]

SHA256 = "53e1ca3fbdda35f7f1c8d740bd1eb1ff04ea48f941661c77580fcbcf5af9c2b9"

TARGETS = (
    "alt.atheism",
    "comp.os.ms-windows.misc",
    "comp.sys.mac.hardware",
    "misc.forsale",
    "rec.autos",
    "rec.sport.hockey",
    "sci.med",
    "sci.space",
    "soc.religion.christian",
    "talk.politics.mideast",
)
RESERVED = (
    "comp.graphics",
    "comp.sys.ibm.pc.hardware",
    "comp.windows.x",
    "rec.motorcycles",
    "rec.sport.baseball",
    "sci.crypt",
    "sci.electronics",
    "talk.politics.guns",
    "talk.politics.misc",
    "talk.religion.misc",
)

_SUBJECT = re.compile(r"^subject:(.*(?:\n[ \t].*)*)", re.MULTILINE)
#: A newsgroup's name, with a dot or a slash between its parts, wherever it stands: it would give the label away.
_GROUP_NAME = re.compile(r"\b(?:alt|comp|misc|rec|sci|soc|talk)[./][a-z0-9][a-z0-9./-]*")


def build(*, r: int = 1, seed: int = 0) -> MIPLDataset:
    """1000 bags of 11 to 86 posts (200 TF-IDF features), 8 % of them positive."""
    X, y = features()
    return from_instances(
        X,
        y,
        targets=TARGETS,
        reserved=RESERVED,
        n_bags=1000,
        sizes=(11, 86),
        mean_size=43122 / 1000,
        positive=0.08,
        r=r,
        seed=seed,
        name="newsgroups",
        description="20 Newsgroups, bydate (Lang 1995); subject and body of each post, 200 TF-IDF features.",
    )


def features() -> tuple[NDArray[np.float32], NDArray[Any]]:
    path = cache_folder() / "newsgroups" / f"tfidf-{SHA256[:8]}.npz"
    if not path.is_file():
        raw = local_file("newsgroups/newsgroups.jsonl.gz", SHA256)
        with gzip.open(raw, "rt", encoding="utf-8") as lines:
            messages = [json.loads(line) for line in lines]
        X = tfidf([post(m["text"]) for m in messages])
        y = np.array([m["category"] for m in messages])
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(path) as part:
            np.savez_compressed(part, X=X, y=y)
    arrays = read_npz(path)
    kept = arrays["X"].any(axis=1)
    return arrays["X"][kept], arrays["y"][kept]


def post(message: str) -> str:
    """The text of a message as its readers see it: subject and body, without the names of newsgroups."""
    header, _, body = message.lower().partition("\n\n")
    subject = _SUBJECT.search(header)
    return _GROUP_NAME.sub(" ", f"{subject[1] if subject else ''}\n{body}")


def tfidf(texts: Sequence[str]) -> NDArray[np.float32]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectoriser = TfidfVectorizer(
        lowercase=False, token_pattern=r"(?u)\b[a-z]{2,}\b", stop_words="english", max_features=200
    )
    # Six decimals: the last bits of the machine's logarithm do not reach the data set.
    return vectoriser.fit_transform(texts).toarray().round(6).astype(np.float32)
