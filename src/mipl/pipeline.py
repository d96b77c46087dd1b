"""Pipelines of bags: scikit-learn's, with the questions that only models of bags answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline, _name_estimators

from mipl.persistence import save_model

__all__ = ["BagPipeline", "before_last", "last_step", "make_pipeline"]


class BagPipeline(Pipeline):  # type: ignore[misc]
    """A scikit-learn `Pipeline` that also answers `predict_instances` and `resolve`, and that `save` writes.

    `mipl.make_pipeline` builds it. scikit-learn's own `Pipeline` works just as well for `fit`, `predict`,
    `predict_proba`, `score`, searches, `mipl.resolve` and `mipl.explain`, but hands on no method that it does not know.

    Parameters
    ----------
    steps : list of (str, estimator)
        Transformers of bags (`mipl.BagTransformer`), and a method of mipl as the last step.
    memory : str or joblib.Memory, default=None
        Where fitted transformers are kept; None: nowhere.
    verbose : bool, default=False
        Whether the time of each step is printed.

    Examples
    --------
    >>> import mipl
    >>> from sklearn.preprocessing import StandardScaler
    >>> train, test = mipl.load("digits").split(0.5, seed=0)
    >>> model = make_pipeline(mipl.BagTransformer(StandardScaler()), mipl.make("PL-kNN")).fit(train)
    >>> model.predict_instances(test).shape == (test.bags.n_instances, 6)
    True
    """

    @property
    def name(self) -> str:
        """The name of the last step's method."""
        return str(getattr(last_step(self), "name", ""))

    @property
    def instance_shape_(self) -> tuple[int, ...]:
        """The shape of an instance before the first step."""
        return tuple(self.steps[0][1].instance_shape_)

    @property
    def reading_(self) -> dict[str, Any]:
        """How the files of the training bags were read, see `mipl.base.MIPLClassifier`."""
        return dict(last_step(self).reading_)

    def predict_instances(self, bags: Any) -> NDArray[np.floating[Any]]:
        """Class probabilities (n, q + 1) of every instance, the last column for the negative class."""
        proba: NDArray[np.floating[Any]] = last_step(self).predict_instances(before_last(self, bags))
        return proba

    def resolve(self, bags: Any, candidates: Any = None) -> NDArray[np.floating[Any]]:
        """Posterior (m, q) of the true label of bags with candidate sets; zero off the candidates.

        Parameters
        ----------
        bags : MIPLDataset, Bags, list of (n_i, d) arrays, or 3-D array
            A data set brings its own candidates.
        candidates : (m, q) mask or weights, or m collections of labels, mappings or strings, default=None
            The candidate labels of each bag; None takes those of the data set.
        """
        posterior: NDArray[np.floating[Any]] = last_step(self).resolve(before_last(self, bags), candidates)
        return posterior

    def save(self, path: str | Path) -> Path:
        """Write the fitted pipeline to one file without pickle, as `MIPLClassifier.save` does.

        Parameters
        ----------
        path : str or Path
            Where to; the file appears whole or not at all.
        """
        return save_model(self, path)


def make_pipeline(*steps: Any, memory: Any = None, verbose: bool = False) -> BagPipeline:
    """A pipeline of transformers of bags and a method, named after their classes as by scikit-learn's `make_pipeline`.

    Parameters
    ----------
    *steps : estimators
        As the steps of `BagPipeline`, without names.
    memory : str or joblib.Memory, default=None
        Where fitted transformers are kept; None: nowhere.
    verbose : bool, default=False
        Whether the time of each step is printed.

    Examples
    --------
    >>> import mipl
    >>> from sklearn.preprocessing import StandardScaler
    >>> list(make_pipeline(mipl.BagTransformer(StandardScaler()), mipl.BagGP()).named_steps)
    ['bagtransformer', 'baggp']
    """
    return BagPipeline(_name_estimators(steps), memory=memory, verbose=verbose)


def last_step(model: Any) -> Any:
    """The last step of a pipeline, or of a pipeline that is its last step; any other model itself."""
    while isinstance(model, Pipeline):
        model = model.steps[-1][1]
    return model


def before_last(model: Any, bags: Any) -> Any:
    """Bags as the `last_step` of a fitted model sees them."""
    while isinstance(model, Pipeline):
        if len(model.steps) > 1:
            bags = model[:-1].transform(bags)
        model = model.steps[-1][1]
    return bags
