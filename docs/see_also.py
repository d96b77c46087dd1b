"""What each page of the reference points to under "See also", with the first line of its docstring.

Here and not in the docstrings, so that a group of names is listed once; a name that does not exist fails the build.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

_PLL = "mipl.pll.SURE mipl.pll.PLAGGD mipl.pll.PLkNN mipl.pll.CLPL mipl.pll.GMPLL mipl.pll.LSBCMM"
_MIL = "mipl.mil.VGPMIL mipl.mil.LMVGPMIL mipl.mil.VWSGP mipl.mil.MIVAE"
_DEEP = "mipl.deep.DEMIPL mipl.deep.ELIMIPL mipl.deep.MIPLMA mipl.deep.ProMIPL mipl.deep.FastMIPL"
_FRONT = (
    "mipl.features.choose_features mipl.features.ConvKMeans mipl.features.UnitRange mipl.features.UnitRows "
    "mipl.features.CommonScale mipl.features.Projection mipl.features.LinearMap"
)
_SCORES = (
    "mipl.scoring.accuracy mipl.scoring.log_loss mipl.scoring.calibration_error "
    "mipl.scoring.chance_calibration_error mipl.scoring.instance_average_precision mipl.label_free_score"
)
_ERRORS = "mipl.MIPLError mipl.DataError mipl.ParameterError mipl.UnavailableError"
_DRAWN = "mipl.datasets.make_bags mipl.datasets.from_instances mipl.datasets.from_bags mipl.load"

RELATED = {
    "mipl.Bags": "mipl.MIPLDataset mipl.load mipl.BagTransformer",
    "mipl.MIPLDataset": "mipl.load mipl.Bags mipl.check mipl.Scan",
    "mipl.Scan": "mipl.scan mipl.MIPLDataset",
    "mipl.load": "mipl.check mipl.scan mipl.MIPLDataset mipl.datasets.dataset_names",
    "mipl.scan": "mipl.load mipl.Scan mipl.BagGP",
    "mipl.check": "mipl.checking.Report mipl.load mipl.resolve",
    "mipl.checking.Report": "mipl.check mipl.checking.Problem",
    "mipl.checking.Problem": "mipl.check mipl.checking.Report",
    "mipl.BagGP": "mipl.resolve mipl.explain mipl.label_free_score mipl.MIPLGP mipl.bag_posterior "
    "sklearn.gaussian_process.GaussianProcessClassifier",
    "mipl.MIPLGP": "mipl.BagGP mipl.gp sklearn.gaussian_process.GaussianProcessRegressor",
    "mipl.make": "mipl.methods mipl.cite",
    "mipl.methods": "mipl.make mipl.cite",
    "mipl.MIPLClassifier": "mipl.checks.check_mipl_estimator mipl.BagGP sklearn.base.ClassifierMixin",
    "mipl.load_model": "mipl.MIPLClassifier mipl.explain",
    **dict.fromkeys(_DEEP.split(), f"{_DEEP} mipl.BagGP torch.optim.SGD"),
    "mipl.pll.EmbeddedPLL": f"{_PLL} mipl.mil.OneVsRest",
    **dict.fromkeys(_PLL.split(), f"mipl.pll.EmbeddedPLL {_PLL}"),
    "mipl.pll.embedding.embed_bags": "mipl.pll.EmbeddedPLL",
    "mipl.pll.PLLClassifier": "mipl.pll.EmbeddedPLL mipl.MIPLClassifier",
    "mipl.mil.OneVsRest": f"{_MIL} mipl.pll.EmbeddedPLL sklearn.multiclass.OneVsRestClassifier",
    **dict.fromkeys(_MIL.split(), f"mipl.mil.OneVsRest {_MIL}"),
    "mipl.mil.MILClassifier": "mipl.mil.OneVsRest mipl.MIPLClassifier",
    "mipl.resolve": "mipl.explain mipl.Resolution mipl.BagGP",
    "mipl.explain": "mipl.resolve mipl.Resolution mipl.load_model",
    "mipl.Resolution": "mipl.resolve mipl.explain mipl.report.write_page",
    "mipl.report.write_page": "mipl.Resolution",
    "mipl.BagTransformer": "mipl.make_pipeline sklearn.preprocessing.FunctionTransformer",
    "mipl.BagPipeline": "mipl.make_pipeline mipl.BagTransformer sklearn.pipeline.Pipeline",
    "mipl.make_pipeline": "mipl.BagTransformer mipl.BagPipeline sklearn.pipeline.make_pipeline",
    **dict.fromkeys(_FRONT.split(), f"{_FRONT} mipl.BagGP"),
    **dict.fromkeys(_SCORES.split(), _SCORES),
    "mipl.datasets.dataset_names": "mipl.load",
    **dict.fromkeys(_DRAWN.split()[:-1], _DRAWN),
    "mipl.datasets.min_max": "mipl.datasets.z_scores sklearn.preprocessing.MinMaxScaler",
    "mipl.datasets.z_scores": "mipl.datasets.min_max sklearn.preprocessing.StandardScaler",
    "mipl.datasets.paper_characteristics": "mipl.datasets.dataset_names",
    "mipl.io.read": "mipl.load mipl.io.write",
    "mipl.io.write": "mipl.MIPLDataset mipl.io.read",
    "mipl.io.decisions.read_decisions": "mipl.io.decisions.apply_decisions mipl.Resolution",
    "mipl.io.decisions.apply_decisions": "mipl.io.decisions.read_decisions mipl.resolve",
    "mipl.bench.Suite": "mipl.bench.load_suite mipl.bench.run",
    "mipl.bench.load_suite": "mipl.bench.suite_names mipl.bench.Suite mipl.bench.run",
    "mipl.bench.suite_names": "mipl.bench.load_suite",
    "mipl.bench.run": "mipl.bench.Suite mipl.bench.Store",
    "mipl.bench.Store": "mipl.bench.run",
    "mipl.checks.check_mipl_estimator": "mipl.checks.mipl_checks mipl.MIPLClassifier "
    "sklearn.utils.estimator_checks.check_estimator",
    "mipl.checks.mipl_checks": "mipl.checks.check_mipl_estimator",
    "mipl.checks.small_dataset": "mipl.checks.small_problem mipl.datasets.make_bags",
    "mipl.checks.small_problem": "mipl.checks.small_dataset mipl.datasets.make_bags",
    **dict.fromkeys(_ERRORS.split(), _ERRORS),
    "mipl.baggp.regression": "mipl.BagGP mipl.bag_posterior mipl.baggp.likelihood",
    "mipl.baggp.likelihood": "mipl.BagGP mipl.bag_posterior mipl.baggp.regression",
}
#: Those of other libraries that one name of a group above has for itself.
_BESIDE = {
    "mipl.pll.PLkNN": "sklearn.neighbors.KNeighborsClassifier",
    "mipl.pll.SURE": "sklearn.kernel_ridge.KernelRidge",
    "mipl.pll.PLAGGD": "sklearn.kernel_ridge.KernelRidge",
    "mipl.pll.CLPL": "sklearn.svm.LinearSVC",
    "mipl.mil.MIVAE": "torch.optim.Adam",
    "mipl.features.ConvKMeans": "sklearn.cluster.KMeans",
    "mipl.features.UnitRange": "sklearn.preprocessing.MinMaxScaler",
    "mipl.features.UnitRows": "sklearn.preprocessing.Normalizer",
    "mipl.features.Projection": "sklearn.decomposition.PCA",
    "mipl.scoring.accuracy": "sklearn.metrics.accuracy_score",
    "mipl.scoring.log_loss": "sklearn.metrics.log_loss",
    "mipl.scoring.calibration_error": "sklearn.calibration.calibration_curve",
    "mipl.scoring.instance_average_precision": "sklearn.metrics.average_precision_score",
    "mipl.label_free_score": "sklearn.model_selection.GridSearchCV",
    "mipl.datasets.make_bags": "sklearn.datasets.make_classification",
}


def found(name: str) -> Any:
    """The object of that name."""
    parent, _, attribute = name.rpartition(".")
    try:
        return getattr(import_module(parent), attribute)
    except (AttributeError, ModuleNotFoundError):
        return import_module(name)


def section(name: str) -> list[str]:
    """The lines of a section "See Also" for numpydoc; none where a name has no relatives."""
    related = [*RELATED.get(name, "").split(), *_BESIDE.get(name, "").split()]
    lines = []
    for other in related:
        if other != name:
            first = (found(other).__doc__ or "").strip().partition("\n")[0]
            lines += [other, "    " + re.sub(r":\w+:`", "`", first)]  # a :class: of other libraries has no target here
    return ["", "See Also", "--------", *lines, ""] if lines else []
