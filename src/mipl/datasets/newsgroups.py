"""Newsgroups-MIPL: bags of posts of the 20 Newsgroups."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from mipl.dataset import MIPLDataset
from mipl.datasets.sources.files import RemoteFile, by_hand, cache_folder, local_file, read_npz
from mipl.datasets.synthesis.build import from_instances
from mipl.datasets.synthesis.grouping import group_sources
from mipl.errors import DataError
from mipl.io.atomic import atomic_path

__all__ = ["build", "post_text", "tfidf"]

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

_SHA256 = "53e1ca3fbdda35f7f1c8d740bd1eb1ff04ea48f941661c77580fcbcf5af9c2b9"
#: What scikit-learn's fetcher downloads.
_ARCHIVE = RemoteFile(
    "scikit-learn/20news_home/20news-bydate.tar.gz",
    "8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
    ["https://ndownloader.figshare.com/files/5975967"],
)
#: Part of the cache file's name; to be raised whenever `post_text` or `tfidf` change.
_PIPELINE = 2
_TEXTS = ("message", "post", "body")
_ROWS = ("unit", "vocabulary")
_N_WORDS = 200
#: With more groups a class has hardly more posts in one than a bag takes.
_MAX_GROUPS = 50

_SUBJECT = re.compile(r"^subject:(.*(?:\n[ \t].*)*)", re.MULTILINE)
_GROUP_NAME = re.compile(r"\b(?:alt|comp|misc|rec|sci|soc|talk)[./][a-z0-9][a-z0-9./-]*")


def build(
    *, r: int = 1, seed: int = 0, text: str = "message", rows: str = "unit", groups: int | None = None
) -> MIPLDataset:
    """1000 bags of 11 to 86 newsgroup posts (200 TF-IDF features), 8 % of them positive.

    Ten groups are the classes, the other ten give the negatives, as in the paper's Appendix A. No positive post is used
    twice. There are fewer than 10,000 negative posts for 39,700 places, so each is used four times or five, but never
    twice in one bag: most test posts of a random split are in training bags as well. ``groups`` prevents that.

    A post is represented by its top 200 TF-IDF features: the 200 words with the largest TF-IDF weight in the whole
    collection, English stop words aside. Vocabulary and document frequencies are those of all
    18,846 posts, whatever their group or bag: they know no label. Posts without any of the 200 words are left out.

    Parameters
    ----------
    r : int, default=1
        False positive labels a bag, 0 to 9.
    seed : int, default=0
        The same seed gives the same bags everywhere.
    text : "message", "post" or "body", default="message"
        What of a message is read: everything, with the header lines on the writer, organisation and machine (the
        default); what its readers see, i.e. subject and body; or the body alone. The names of newsgroups are taken out
        in any case. The less is read, the harder the problem: see docs/datasets.md.
    rows : {"unit", "vocabulary"}, default="unit"
        Whether the 200 weights of a post have unit length, or all weights of its words had it before the 200 were
        taken: a post then has the smaller weights the less it says in these words.
    groups : int, default=None
        Deal the posts out to this many groups, every bag from one of them; `MIPLDataset.split` then gives whole groups
        to either side, so that no post, nor another one with the same features, is on both. At most 50; ten allow ten
        different splits in half.
    """
    if groups is not None and not 2 <= groups <= _MAX_GROUPS:
        raise DataError(f"groups={groups}; it must be 2 to {_MAX_GROUPS}, so that each has posts of every class")
    X, y = _features(text, rows)
    length = "rows of unit length" if rows == "unit" else "rows of unit length over the whole vocabulary"
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
        groups=None if groups is None else _group(X, y, groups, seed),
        name="newsgroups",
        description=f"20 Newsgroups by date (Lang 1995); TF-IDF of the {text} over 200 words, {length}.",
    )


def _group(X: NDArray[np.float32], y: NDArray[Any], groups: int, seed: int) -> NDArray[np.int64]:
    """The group of each post: posts with the same features, as copies of one message, stay together."""
    _, source = np.unique(X, axis=0, return_inverse=True)
    kind_of = {newsgroup: kind for kind, newsgroup in enumerate(TARGETS)}
    kinds = np.array([kind_of.get(newsgroup, len(TARGETS)) for newsgroup in y])
    return group_sources(source.ravel(), kinds, groups, seed)


def post_text(message: str, text: str = "message") -> str:
    r"""What of a raw message is read, in lower case and without the names of newsgroups.

    A dotted or slashed name such as ``rec.autos`` would give the label away wherever it stands: in cross-post lines
    of the header, in signatures, in "this is off topic here, try ...".

    Examples
    --------
    >>> post_text("From: me@there.edu\nSubject: FAQ of Rec.Autos\nLines: 1\n\nSee also sci.med.", "post").split()
    ['faq', 'of', 'see', 'also']
    """
    header, _, body = message.lower().partition("\n\n")
    if text == "post":
        subject = _SUBJECT.search(header)
        header = subject[1] if subject else ""
    elif text == "body":
        header = ""
    return _GROUP_NAME.sub(" ", f"{header}\n{body}")


def tfidf(texts: Sequence[str], rows: str = "unit") -> NDArray[np.float32]:
    """The top 200 TF-IDF features (n, 200) of texts in lower case: the words of the largest summed weight.

    Parameters
    ----------
    texts : sequence of str
        The posts.
    rows : {"unit", "vocabulary"}, default="unit"
        See `build`.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.preprocessing import normalize

    words = TfidfVectorizer(lowercase=False, token_pattern=r"\b[a-z]{2,}\b", stop_words="english")
    weights = words.fit_transform(texts)
    # Rounded, so that the last bits of a machine's logarithm reach neither the choice of words nor the data.
    total = np.asarray(weights.sum(axis=0)).ravel().round(6)
    top = np.sort(np.argsort(-total, kind="stable")[:_N_WORDS])
    chosen = normalize(weights[:, top]) if rows == "unit" else weights[:, top]
    features: NDArray[np.float32] = chosen.toarray().round(6).astype(np.float32)
    return features


def _features(text: str, rows: str) -> tuple[NDArray[np.float32], NDArray[Any]]:
    """Features and newsgroup of every post that has at least one of the words; computed once, then cached."""
    if text not in _TEXTS:
        raise DataError(f"text={text!r}; it must be one of {', '.join(_TEXTS)}")
    if rows not in _ROWS:
        raise DataError(f"rows={rows!r}; it must be one of {', '.join(_ROWS)}")
    local = local_file("newsgroups/newsgroups.jsonl.gz", _SHA256)
    source = "scikit-learn" if local is None else _SHA256[:12]
    kind = text if rows == "unit" else f"{text}-{rows}"
    cached = cache_folder() / "newsgroups" / f"tfidf-{_PIPELINE}-{kind}-{source}.npz"
    with suppress(OSError, ValueError, EOFError, KeyError, BadZipFile):  # no cache, or a damaged one: compute again
        arrays = read_npz(cached)
        return arrays["X"], arrays["y"]
    messages, newsgroups = _fetch() if local is None else _read(local)
    X = tfidf([post_text(message, text) for message in messages], rows)
    known = X.any(axis=1)
    X, y = X[known], np.array(newsgroups)[known]
    with suppress(OSError):  # a cache folder that cannot be written only costs time
        cached.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(cached) as part, part.open("wb") as file:
            np.savez_compressed(file, X=X, y=y)
    return X, y


def _read(path: Path) -> tuple[list[str], list[str]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [row["text"] for row in rows], [row["category"] for row in rows]


def _fetch() -> tuple[list[str], list[str]]:
    """The messages from scikit-learn's fetcher, in the order of the raw file: training part first, by group and id."""
    from sklearn.datasets import fetch_20newsgroups

    messages: list[str] = []
    y: list[str] = []
    for subset in ("train", "test"):
        try:
            part = fetch_20newsgroups(subset=subset, shuffle=False, data_home=cache_folder() / "scikit-learn")
        except Exception as error:  # whatever went wrong, the advice is the same
            raise DataError(by_hand([_ARCHIVE], [f"{_ARCHIVE.urls[0]}: {error}"])) from error
        names = [part.target_names[target] for target in part.target]
        ids = [Path(name).name for name in part.filenames]
        for k in sorted(range(len(ids)), key=lambda k: (names[k], ids[k])):
            messages.append(part.data[k])
            y.append(names[k])
    return messages, y
