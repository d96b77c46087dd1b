"""What a model file of an older format says, in the terms of today.

A migration rewrites the tree of a model file's header (see `mipl.persistence`) before any object is built from it; the
arrays that the tree refers to stay as they are.

Format 1 to 2: classes moved, a partial-label or multi-instance learner became the parameter `learner` of a wrapper
where it had a class for bags of its own, and parameters took the names that they have in every method.

Parameters and fitted attributes that a class was given later are filled in, in files of any format, with the value that
does what the class did without them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["migrate"]

_BAGGP = "mipl.baggp.estimator:BagGP"
_MIPLGP = "mipl.miplgp.estimator:MIPLGP"
_EMBEDDED = "mipl.pll.embedding:EmbeddedPLL"
_ONE_VS_REST = "mipl.mil.ovr:OneVsRest"
_DEEP = tuple(f"mipl.deep.{name.lower()}:{name}" for name in ("DEMIPL", "ELIMIPL", "MIPLMA", "ProMIPL", "FastMIPL"))

#: Classes of format 1 that live elsewhere.
_MOVED = {
    "mipl.baggp:BagGP": _BAGGP,
    "mipl.miplgp:MIPLGP": _MIPLGP,
    # The variants had a class each; their parameters say all that set them apart.
    "mipl.miplgp:MIPLGPUniform": _MIPLGP,
    "mipl.miplgp:MIPLGPNaive": _MIPLGP,
    "mipl.miplgp.estimator:MIPLGPUniform": _MIPLGP,
    "mipl.miplgp.estimator:MIPLGPNaive": _MIPLGP,
}

#: Classes of format 1 that are a learner in a wrapper: class for bags -> (wrapper, learner).
_WRAPPED = {
    "mipl.pll.plknn:PLkNNBags": (_EMBEDDED, "mipl.pll.plknn:PLkNN"),
    "mipl.pll.clpl:CLPLBags": (_EMBEDDED, "mipl.pll.clpl:CLPL"),
    "mipl.pll.lsbcmm:LSBCMMBags": (_EMBEDDED, "mipl.pll.lsbcmm:LSBCMM"),
    "mipl.pll.sure:SUREBags": (_EMBEDDED, "mipl.pll.sure:SURE"),
    "mipl.pll.gmpll:GMPLLBags": (_EMBEDDED, "mipl.pll.gmpll:GMPLL"),
    "mipl.pll.plaggd:PLAGGDBags": (_EMBEDDED, "mipl.pll.plaggd:PLAGGD"),
    "mipl.mil.vwsgp:VWSGPBags": (_ONE_VS_REST, "mipl.mil.vwsgp:VWSGP"),
    "mipl.mil.vgpmil:VGPMILBags": (_ONE_VS_REST, "mipl.mil.vgpmil:VGPMIL"),
    "mipl.mil.lmvgpmil:LMVGPMILBags": (_ONE_VS_REST, "mipl.mil.lmvgpmil:LMVGPMIL"),
    "mipl.mil.mivae:MIVAEBags": (_ONE_VS_REST, "mipl.mil.mivae:MIVAE"),
}
#: Parameters of the wrappers themselves; every other one is the learner's.
_WRAPPER_PARAMETERS = {_EMBEDDED: {"embed"}, _ONE_VS_REST: {"candidate_policy", "n_jobs"}}

#: Parameters and fitted attributes with another name: class of format 2 -> {old: new}.
_RENAMED: dict[str, dict[str, str]] = {
    _BAGGP: {"weights_": "stacking_weights_", "strange_": "outlier_rate_", "weight_variance_": "coef_variance_"},
    _MIPLGP: {
        "length_scale": "lengthscale",
        "output_scale": "outputscale",
        "n_iter": "max_iter",
        "lr": "learning_rate",
        "length_scale_": "lengthscale_",
        "output_scale_": "outputscale_",
    },
    "mipl.pll.plknn:PLkNN": {"k": "n_neighbors"},
    "mipl.pll.gmpll:GMPLL": {"k": "n_neighbors", "nu": "unary_weight"},
    "mipl.pll.plaggd:PLAGGD": {"k": "n_neighbors", "width": "lengthscale", "width_": "lengthscale_"},
    "mipl.pll.sure:SURE": {"width": "lengthscale", "width_": "lengthscale_"},
    "mipl.pll.lsbcmm:LSBCMM": {"stick_iter": "max_stick_iter"},
    "mipl.mil.lmvgpmil:LMVGPMIL": {"open_iter": "n_open_iter"},
    "mipl.mil.mivae:MIVAE": {"latent": "latent_dim", "hidden": "hidden_dim"},
}

#: Fitted attributes that format 1 did not have: class of format 2 -> {attribute: the one whose value it has}.
_ADDED = {_MIPLGP: {"seed_": "random_state"}}  # random_state was an integer, and the seed
#: Parameters that came later, at the value that does what was done without them.
_NEW_PARAMETERS: dict[str, dict[str, Any]] = {
    _MIPLGP: {"sampling": "marginal", "engine": "exact", "n_landmarks": 500, "subset_size": 6000},
    _BAGGP: {"cross_fit": 0, "memory_budget": None, "candidate_noise": 0.0, "verbose": False},
    "mipl.mil.vgpmil:VGPMIL": {"verbose": False},
    "mipl.mil.lmvgpmil:LMVGPMIL": {"verbose": False},
}
#: Fitted attributes that came later, likewise.
_NEW_ATTRIBUTES: dict[str, dict[str, Any]] = {
    _MIPLGP: {"engine_": "exact", "prior_root_": None, "landmarks_": None},
    # Nothing was cross-fitted, and the bags that the model was fitted on are not known to it.
    _BAGGP: {
        "background_": None,
        "vote_strength_": None,
        "vote_reliability_": None,
        "vote_correlation_": None,
        "label_free_score_": None,
        "label_free_error_": None,
        "bag_digests_": None,
        "candidate_noise_": 0.0,
        "outside_": None,
    },
    "mipl.pll.plknn:PLkNN": {"sample_weight_": None},
    # A front end was an attribute only where there was one.
    **{path: {"features_": None} for path in _DEEP},
}


def migrate(tree: Any, version: int) -> Any:
    """The tree of a model file of format `version`, as the newest format has it.

    Parameters
    ----------
    tree : JSON value
        What the header describes; it is not changed.
    version : int
        The format of the file.
    """
    return _rewritten(tree, _from_format_1 if version < 2 else _completed)


def _rewritten(node: Any, estimator: Callable[[str, dict[str, Any]], dict[str, Any]]) -> Any:
    """The tree with every estimator rewritten, from the leaves on, by a function of its class and its state."""
    if isinstance(node, list):
        return [_rewritten(v, estimator) for v in node]
    if not isinstance(node, dict):
        return node
    if node.get("$") == "dict":  # its keys are a user's words, not the format's
        return {**node, "items": {key: _rewritten(value, estimator) for key, value in node["items"].items()}}
    values = {key: _rewritten(value, estimator) for key, value in node.items()}
    return estimator(node["class"], values["state"]) if node.get("$") == "estimator" else values


def _from_format_1(path: str, state: dict[str, Any]) -> dict[str, Any]:
    if path in _WRAPPED:
        wrapper, learner = _WRAPPED[path]
        own = {k: v for k, v in state.items() if k in _WRAPPER_PARAMETERS[wrapper] or k.endswith("_")}
        params = {k: v for k, v in state.items() if k not in own}
        return _node(wrapper, {"learner": _node(learner, params), **own})
    return _node(_MOVED.get(path, path), state)


def _node(path: str, state: dict[str, Any]) -> dict[str, Any]:
    renamed = _RENAMED.get(path, {})
    new = {renamed.get(name, name): value for name, value in state.items()}
    added = {name: new[source] for name, source in _ADDED.get(path, {}).items()} if _is_fitted(new) else {}
    return _completed(path, {**new, **added})


def _completed(path: str, state: dict[str, Any]) -> dict[str, Any]:
    later = _NEW_PARAMETERS.get(path, {}) | (_NEW_ATTRIBUTES.get(path, {}) if _is_fitted(state) else {})
    return {"$": "estimator", "class": path, "state": {**later, **state}}


def _is_fitted(state: Mapping[str, Any]) -> bool:
    return any(name.endswith("_") for name in state)
