"""MIPLClassifier: the contract that every method keeps."""

from __future__ import annotations

import logging
import time
import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from mipl.bags import Bags, as_bags
from mipl.candidates import bag_name, is_label_vector, parse_candidates, parse_labels, parse_votes, uniform_weights
from mipl.dataset import MIPLDataset
from mipl.errors import DataError, ParameterError
from mipl.feature_ranges import feature_ranges, warn_of_far_features, warn_of_wild_bags
from mipl.parameters import check_parameters
from mipl.persistence import save_model
from mipl.streams import BagStream
from mipl.supervision import (
    Supervision,
    background_column,
    check_groups,
    check_sample_weight,
    possible_classes,
    warn_of_impossible,
    warn_sets_only,
)

__all__ = ["MIPLClassifier", "refusal_of_weights", "restrict_to_candidates"]

_LOG = logging.getLogger(__name__)


class MIPLClassifier(ClassifierMixin, BaseEstimator, metaclass=ABCMeta):  # type: ignore[misc]
    """Base of all methods: `fit` on bags and candidate sets, then classify, resolve and explain.

    A method implements `_fit` and `_predict_proba`, and overrides `_predict_instances` and `_resolve` where it knows
    better than the defaults below, and `_fit_supervised` where it can use more than candidate sets: votes, a background
    class, groups or sample weights. Inputs are checked here, once; the underscored methods see a `Bags` and a bool
    mask. Classes that no training bag makes possible have probability zero in all answers, whatever these methods say
    of them. Constructors are keyword-only and only assign; `_parameter_constraints` says what each parameter may be,
    and `fit` checks it. What `fit` learns lives in attributes that end in an underscore and hold NumPy arrays, numbers,
    strings, lists, dictionaries or other estimators, so that `save` can write them without pickle.

    Wherever bags are expected, a `MIPLDataset` is taken too: it brings its candidates, labels and class names, and
    errors call the bags by its ids. Where the model and the bags both have feature names, columns are matched by name.
    A fitted model takes a `mipl.Scan` too and reads it chunk by chunk.

    Attributes
    ----------
    classes_ : (q,) labels
        In the column order of every probability matrix.
    possible_ : (q,) bool
        Which classes are a candidate of some training bag, not counting bags of which nothing is known; the others have
        probability zero.
    background_ : int or None
        The column of the background class.
    n_features_in_ : int
        Features of an instance.
    feature_names_in_ : (d,) str
        Only where the training bags had feature names.
    instance_shape_ : tuple of int
        The shape of an instance before it was flattened.
    feature_ranges_ : (2, d) array
        Smallest and largest value of each feature in the training bags; new bags far outside are warned of.
    reading_ : dict
        How the files of the training bags were read: the options of `mipl.load` or `mipl.scan` that were given, with
        the means of the features for ``missing="mean"``. ``mipl.load("new.csv", **model.reading_)`` reads others so,
        and the command line does by itself. Empty where there were no files or options.
    """

    #: Name in the registry and in tables.
    name: ClassVar[str] = ""
    #: Where the method was published.
    citation: ClassVar[str] = ""
    #: What each parameter may be, see `mipl.parameters.check_parameters`.
    _parameter_constraints: ClassVar[dict[str, Any]] = {}
    #: Whether `fit` takes a weight per bag; a method that says so implements `_fit_weighted` or `_fit_supervised`.
    supports_sample_weight: ClassVar[bool] = False
    #: Why it does not, for the error; nothing where there is no more to say.
    _no_sample_weight: ClassVar[str] = ""
    #: How many calls up from `_fit_supervised` the user's call of `fit` is, for warnings.
    _fit_depth: ClassVar[int] = 6

    # ---------------------------------------------------------------- what a method implements

    @abstractmethod
    def _fit(self, bags: Bags, candidates: NDArray[np.bool_]) -> None:
        """Learn from m bags and their (m, q) candidate mask."""

    def _fit_supervised(self, bags: Bags, supervision: Supervision) -> None:
        """Learn from m bags and all that is known of their labels, by default from the candidate sets alone.

        The background class is then a class as any other, and groups are not used.
        """
        if supervision.weights is not None:
            warn_sets_only(self.name or type(self).__name__, stacklevel=self._fit_depth)
        if supervision.sample_weight is None:
            self._fit(bags, supervision.candidates)
        else:
            self._fit_weighted(bags, supervision.candidates, supervision.sample_weight)

    def _fit_weighted(self, bags: Bags, candidates: NDArray[np.bool_], sample_weight: NDArray[np.float64]) -> None:
        """Learn as `_fit` does, with positive weights (m,): a bag of weight 2 counts as one that is given twice."""
        raise NotImplementedError(f"{type(self).__name__} supports sample weights but has no _fit_weighted")

    def _fit_stream(self, bags: BagStream) -> None:
        """Learn from bags that are not in memory; a method that can do so overrides this, and begins with `_known`."""
        raise DataError(
            f"{self.name or type(self).__name__} needs all bags in memory and cannot be fitted on a scan; "
            "fit it on some of the bags: fit(scan.sample(n)), or on all: fit(scan.to_dataset())"
        )

    @abstractmethod
    def _predict_proba(self, bags: Bags) -> NDArray[np.floating[Any]]:
        """Class probabilities (m, q) of bags."""

    def _predict_instances(self, bags: Bags) -> NDArray[np.floating[Any]]:
        """Instance probabilities (n, q + 1); by default those of each instance as a bag of its own.

        A method without a notion of negative instances leaves the last column at zero.
        """
        proba = self._predict_proba(bags.single_instances())
        return np.concatenate([proba, np.zeros((len(proba), 1), proba.dtype)], axis=1)

    def _resolve(self, bags: Bags, candidates: NDArray[np.bool_]) -> NDArray[np.floating[Any]]:
        """Posterior of the true label (m, q), by default the class probabilities restricted to the candidates."""
        return restrict_to_candidates(self._sound(self._predict_proba(bags)), candidates)

    def _resolve_votes(
        self, bags: Bags, candidates: NDArray[np.bool_], votes: NDArray[np.float64]
    ) -> NDArray[np.floating[Any]]:
        """As `_resolve`, with votes or weights (m, q) on the candidates; by default they are only said to be unused."""
        warn_sets_only(self.name or type(self).__name__, stacklevel=4)
        return self._resolve(bags, candidates)

    # ---------------------------------------------------------------- public interface

    def fit(
        self,
        bags: Any,
        candidates: Any = None,
        classes: Any = None,
        *,
        background: Any = None,
        groups: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Learn from bags and what is known of their labels.

        Parameters
        ----------
        bags : MIPLDataset, Bags, list of (n_i, d) arrays, or 3-D array
            A data set brings its own candidates, weights, class names, background class and groups.
        candidates : (m, q) mask or weights, or m collections of labels, mappings, strings or None, default=None
            The candidate labels of each bag; None takes those of the data set. Votes or weights are an (m, q) matrix of
            numbers from 0 up, mappings from labels to weights, or strings ``"owl:3|wren:1"``; zero is no candidate. A
            bag whose entry is None may be of any class that some other bag has as a candidate; a single label is
            certain. See `mipl.candidates.parse_votes`. Fitted with a data set or with labels, `predict` gives labels;
            fitted with a matrix alone, class indices. A method that can only use sets says so in a warning.
        classes : (q,) labels, default=None
            Names for the columns of a matrix, or the full set of labels. None takes the data set's, else ``0..q-1`` for
            a matrix and the labels that occur for collections.
        background : label, default=None
            The class whose bags hold no positive instance; None takes the data set's. Methods that have no use for it
            treat it as any other class.
        groups : (m,) integers or names, default=None
            Bags that share a source; None takes the data set's. Used by methods that hold out bags while they learn.
        sample_weight : (m,) float, default=None
            How often each bag counts; None for once each. A bag of weight 2 counts as if it were given twice, one of
            weight 0 as if it were left out, and fractions lie between. It is the size that matters, not only the
            ratio: weights of about one on average keep the balance between the bags and a method's own priors. A
            method that cannot weight bags (`supports_sample_weight`) raises a `ParameterError`.

        Returns
        -------
        self
        """
        check_parameters(self)
        if sample_weight is not None and not self.supports_sample_weight:
            raise ParameterError(refusal_of_weights(self, "bags"))
        if isinstance(bags, BagStream):
            for given in (candidates, classes, background, groups, sample_weight):
                _check_none(given, "candidates, classes, background and groups")
            return self._learn_from(bags, bags.classes, bags.reading, lambda: self._fit_stream(bags))
        checked = _bags_of(bags)
        warn_of_wild_bags(checked, _ids_of(bags), stacklevel=2)
        supervision, names = _supervision(bags, len(checked), candidates, classes, background, groups, sample_weight)
        counts, known = supervision.counting()
        kept = checked if counts is None else checked[counts]
        reading = bags.reading if isinstance(bags, MIPLDataset) else {}
        depth = self._fit_depth - 1
        return self._learn_from(checked, names, reading, lambda: self._fit_supervised(kept, self._known(known, depth)))

    def _learn_from(
        self, bags: Bags | BagStream, names: NDArray[Any], reading: dict[str, Any], learn: Callable[[], None]
    ) -> Self:
        """Forget what was learned, note what the bags are like, and learn."""
        self._forget()
        self.classes_ = names
        self.n_features_in_ = bags.n_features
        self.instance_shape_ = bags.instance_shape
        self.reading_ = dict(reading)
        if bags.feature_names is not None:
            self.feature_names_in_ = np.array(bags.feature_names)
        if isinstance(bags, Bags):
            self.feature_ranges_ = feature_ranges(bags)
        start = time.perf_counter()
        try:
            learn()
        except BaseException:
            self._forget()  # half a fit is none
            raise
        seconds, sizes = time.perf_counter() - start, (len(bags), bags.n_instances, len(names))
        _LOG.info("%s: fitted on %d bags, %d instances, %d classes in %.2f s", self.name, *sizes, seconds)
        return self

    def _known(self, supervision: Supervision, stacklevel: int) -> Supervision:
        """The same, after a note of what is possible, and a word to the user (at `stacklevel`) of what is not."""
        candidates = supervision.candidates
        self.background_ = supervision.background
        self.possible_ = possible_classes(candidates)
        warn_of_impossible(self.classes_[~self.possible_], stacklevel)
        if candidates.all():
            warnings.warn(
                "every class is a candidate of every training bag, so nothing tells the classes apart and all answers "
                "are guesses; leave out candidates that can be ruled out",
                UserWarning,
                stacklevel=stacklevel,
            )
        return supervision

    def predict_proba(self, bags: Any) -> NDArray[np.floating[Any]]:
        """Class probabilities (m, q) of bags; rows sum to one."""
        if isinstance(bags, BagStream):
            return bags.map_bags(self.predict_proba)
        return self._sound(self._predict_proba(self._check_bags(bags)))

    def predict(self, bags: Any) -> NDArray[Any]:
        """The most probable label (m,) of each bag."""
        if isinstance(bags, BagStream):
            return bags.map_bags(self.predict)
        checked = self._check_bags(bags)
        predicted: NDArray[Any] = self.classes_[np.argmax(self._sound(self._predict_proba(checked)), axis=1)]
        return predicted

    def predict_instances(self, bags: Any) -> NDArray[np.floating[Any]]:
        """Class probabilities (n, q + 1) of every instance, the last column for the negative class."""
        if isinstance(bags, BagStream):
            return bags.map_bags(self.predict_instances)
        return self._sound(self._predict_instances(self._check_bags(bags)), "instance")

    def resolve(self, bags: Any, candidates: Any = None) -> NDArray[np.floating[Any]]:
        """Posterior (m, q) of the true label of bags with candidate sets; zero off the candidates.

        Where all candidates of a bag are classes that no training bag had, they are equally probable.

        Parameters
        ----------
        bags : MIPLDataset, Bags, list of (n_i, d) arrays, or 3-D array
            A data set brings its own candidates; its classes may be some of the model's, in any order.
        candidates : (m, q) mask or weights, or m collections of labels, mappings or strings, default=None
            The candidate labels of each bag, with votes or weights where `fit` takes them; None takes those of the data
            set. A method that can only use sets says so in a warning.
        """
        if isinstance(bags, BagStream):
            _check_none(candidates, "candidates")
            return bags.map_datasets(self.resolve)
        checked = self._check_bags(bags)
        if candidates is None:
            if not isinstance(bags, MIPLDataset):
                raise DataError("no candidates: pass resolve(bags, candidates), or resolve(dataset)")
            candidates = self._candidates_of(bags)
        mask, votes, _ = parse_votes(candidates, self.classes_, n_bags=len(checked), bag_ids=_ids_of(bags))
        possible = self._possible_classes
        known = (mask & possible).any(axis=1, keepdims=True)
        sets = np.where(known, mask & possible, possible)
        if votes is None or all(len(set(row[row > 0].tolist())) == 1 for row in votes):  # equal votes tell nothing
            posterior = self._sound(self._resolve(checked, sets))
        else:
            posterior = self._sound(self._resolve_votes(checked, sets, np.where(known, votes * possible, possible)))
        return posterior if known.all() else np.where(known, posterior, uniform_weights(mask))

    def score(self, bags: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy against true labels.

        Parameters
        ----------
        bags : MIPLDataset, Bags, list of (n_i, d) arrays, or 3-D array
            A data set brings its own labels.
        y : (m,) labels, (m, q) bool mask, or m collections of labels, default=None
            The true label of each bag; None takes those of the data set. Given candidate sets instead, as by a
            cross-validation that knows no true label, the score is the share of bags whose predicted label is among
            their candidates.
        sample_weight : (m,) float, default=None
            How much each bag counts; None for all alike. Every method takes it here.
        """
        if isinstance(bags, BagStream):
            _check_none(y, "labels")
            _check_none(sample_weight, "sample_weight")
            return float(bags.map_datasets(lambda ds: np.full(len(ds), self.score(ds))).mean())
        checked = self._check_bags(bags)
        m, ids = len(checked), _ids_of(bags)
        if y is None:
            y = self._labels_of(bags)
        predicted = np.argmax(self._sound(self._predict_proba(checked)), axis=1)
        if is_label_vector(y, self.classes_):
            truth = parse_labels(y, self.classes_, n_bags=m, bag_ids=ids)
            unknown = np.flatnonzero(truth < 0)
            if len(unknown):
                raise DataError(f"{bag_name(unknown[0], ids)} has no true label; leave it out of the score")
            right = predicted == truth
        else:
            right = self._check_candidates(y, bags, m)[np.arange(m), predicted]
        return float(np.average(right, weights=check_sample_weight(sample_weight, m, ids)))

    def save(self, path: str | Path) -> Path:
        """Write the fitted model to one file; `mipl.load_model` reads it back without running any code from it.

        Parameters
        ----------
        path : str or Path
            Where to; the file appears whole or not at all.
        """
        return save_model(self, path)

    # ---------------------------------------------------------------- checks

    def _check_bags(self, bags: Any) -> Bags:
        """The bags in the layout that the model was fitted with: columns by name where both sides have names."""
        if not hasattr(self, "classes_"):  # the check itself takes longer than the others together
            check_is_fitted(self, "classes_")
        checked = _bags_of(bags)
        expected = getattr(self, "feature_names_in_", None)
        if expected is not None and checked.feature_names is not None:
            checked = checked.match_features(expected.tolist(), owner="the model")
        if checked.n_features != self.n_features_in_:
            raise DataError(
                f"the bags have {checked.n_features} features, the model was fitted with {self.n_features_in_}"
                + (f" (instances of shape {self.instance_shape_})" if len(self.instance_shape_) > 1 else "")
            )
        ranges = getattr(self, "feature_ranges_", None)  # models of earlier files have none
        if ranges is not None:
            warn_of_far_features(checked, ranges, stacklevel=3)
        return checked.with_instance_shape(tuple(self.instance_shape_), owner="the model")

    def _sound(self, answer: NDArray[np.floating[Any]], what: str = "bag") -> NDArray[np.floating[Any]]:
        """An answer with a row per bag or instance, without mass on classes that are not possible.

        One that is not finite is an error, and not the first class.
        """
        finite = np.isfinite(answer)
        if not finite.all():
            wrong = np.flatnonzero(~finite.reshape(len(finite), -1).all(axis=1))
            raise DataError(
                f"{self.name or type(self).__name__} has no finite answer for {what} {wrong[0]}"
                + (f" and {len(wrong) - 1} more" if len(wrong) > 1 else "")
                + "; the model is damaged, or such numbers are too large for it: fit it again, on rescaled features"
            )
        possible = self._possible_classes
        q = len(possible)
        if not answer[:, :q][:, ~possible].any():
            return answer
        kept = np.broadcast_to(possible, (len(answer), q))
        return restrict_to_candidates(answer, np.concatenate([kept, answer[:, q:] > 0], axis=1))

    @property
    def _possible_classes(self) -> NDArray[np.bool_]:
        """Which classes (q,) are possible: all in models of earlier files."""
        possible: NDArray[np.bool_] = getattr(self, "possible_", np.ones(len(self.classes_), dtype=bool))
        return possible

    def _check_candidates(self, candidates: Any, bags: Any, n_bags: int) -> NDArray[np.bool_]:
        return parse_candidates(candidates, self.classes_, n_bags=n_bags, bag_ids=_ids_of(bags))[0]

    def _candidates_of(self, dataset: MIPLDataset) -> Any:
        """A data set's candidate sets or votes by name, or its mask or votes where the model knows no names."""
        votes = dataset.candidate_weights
        if self._by_position(dataset):
            return dataset.candidates if votes is None else votes
        if votes is None:
            return dataset.candidate_sets()
        return [dict(zip(dataset.classes.tolist(), row, strict=True)) for row in votes.tolist()]

    def _labels_of(self, bags: Any) -> Any:
        """A data set's true labels by name, or as class indices where the model knows no names."""
        if not isinstance(bags, MIPLDataset):
            raise DataError("no labels: pass score(bags, labels), or score(dataset)")
        if bags.labels is None:
            raise DataError("the data set has no true labels to score against; pass candidate sets to score by these")
        return bags.labels if self._by_position(bags) else np.array(bags.label_names(), dtype=object)

    def _by_position(self, dataset: MIPLDataset) -> bool:
        """Whether the data set's classes are the model's columns: only where the model was fitted with a mask alone."""
        q = len(self.classes_)
        nameless = np.array_equal(self.classes_, np.arange(q))
        if not nameless or dataset.classes.dtype.kind != "U":
            return False
        if dataset.n_classes != q:
            raise DataError(
                f"the model was fitted with {q} classes without names, the data set has {dataset.n_classes}; "
                "fit it with a data set, or pass classes to fit"
            )
        return True

    def _forget(self) -> None:
        """Drop what an earlier fit learned, so that a second one starts as the first did."""
        for attribute in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, attribute)


def refusal_of_weights(method: Any, what: str) -> str:
    """The error of a method, of bags or of samples (`what`), that cannot weight these."""
    reason = f": {method._no_sample_weight}" if method._no_sample_weight else ""
    return f"{method.name or type(method).__name__} cannot weight {what}{reason}; fit it without sample_weight"


def restrict_to_candidates(
    proba: NDArray[np.floating[Any]], candidates: NDArray[np.bool_]
) -> NDArray[np.floating[Any]]:
    """Zero the non-candidates of (m, q) probabilities and normalise rows; rows without mass become uniform."""
    kept = np.where(candidates, proba, 0)
    kept = np.where(kept.sum(axis=1, keepdims=True) > 0, kept, candidates.astype(kept.dtype))
    posterior: NDArray[np.floating[Any]] = kept / kept.sum(axis=1, keepdims=True)
    return posterior


def _supervision(
    bags: Any, m: int, candidates: Any, classes: Any, background: Any, groups: Any, sample_weight: Any
) -> tuple[Supervision, NDArray[Any]]:
    """What `fit` was told of m bags, and the class names (q,); a data set fills in what was not passed."""
    own = bags if isinstance(bags, MIPLDataset) else None
    ids = _ids_of(bags)
    if own is None and candidates is None:
        raise DataError("no candidates: pass fit(bags, candidates), or fit(dataset) with a MIPLDataset")
    if own is not None and classes is None:
        classes = own.classes
    given = own.candidates if own is not None and candidates is None else candidates
    mask, weights, names = parse_votes(given, classes, n_bags=m, bag_ids=ids)
    if own is not None:
        weights = own.candidate_weights if candidates is None else weights
        background = own.background if background is None else background
        groups = own.groups if groups is None else groups
    supervision = Supervision(
        mask,
        weights,
        background_column(background, names),
        check_groups(groups, m, ids),
        check_sample_weight(sample_weight, m, ids),
    )
    return supervision, names


def _bags_of(bags: Any) -> Bags:
    return bags.bags if isinstance(bags, MIPLDataset) else as_bags(bags)


def _ids_of(bags: Any) -> NDArray[Any] | None:
    return bags.bag_ids if isinstance(bags, MIPLDataset) else None


def _check_none(given: Any, what: str) -> None:
    if given is not None:
        raise DataError(f"a scan brings its own {what} in every chunk; pass the scan alone")
