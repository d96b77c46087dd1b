"""What to cite: BibTeX for every method, and for the library itself."""

from __future__ import annotations

from typing import Any

from mipl import __version__
from mipl.errors import ParameterError
from mipl.registry import describe, methods

__all__ = ["cite"]

# Names are as the works print them; initials where nothing more is needed to find the work.
_LIBRARY = f"""@software{{mipl,
  title   = {{mipl: learning from bags of instances with ambiguous labels}},
  author  = {{{{The mipl developers}}}},
  version = {{{__version__}}},
  year    = {{2026}},
}}"""

_MIPLGP = """@article{tang2024miplgp,
  title   = {Multi-Instance Partial-Label Learning: Towards Exploiting Dual Inexact Supervision},
  author  = {Tang, Wei and Zhang, Weijia and Zhang, Min-Ling},
  journal = {Science China Information Sciences},
  volume  = {67},
  number  = {3},
  year    = {2024},
}"""

_VGPMIL = """@inproceedings{haussmann2017variational,
  title     = {Variational {Bayesian} Multiple Instance Learning with {Gaussian} Processes},
  author    = {Haussmann, M. and Hamprecht, F. A. and Kandemir, M.},
  booktitle = {CVPR},
  year      = {2017},
}"""

_WORKS = {
    "BagGP": _LIBRARY,
    "MIPLGP": _MIPLGP,
    "DEMIPL": """@inproceedings{tang2023demipl,
  title     = {Disambiguated Attention Embedding for Multi-Instance Partial-Label Learning},
  author    = {Tang, Wei and Zhang, Weijia and Zhang, Min-Ling},
  booktitle = {NeurIPS},
  year      = {2023},
}""",
    "ELIMIPL": """@inproceedings{tang2024elimipl,
  title     = {Exploiting Conjugate Label Information for Multi-Instance Partial-Label Learning},
  author    = {Tang, Wei and Zhang, Weijia and Zhang, Min-Ling},
  booktitle = {IJCAI},
  year      = {2024},
}""",
    "MIPLMA": """@inproceedings{tang2024miplma,
  title     = {Multi-Instance Partial-Label Learning with Margin Adjustment},
  author    = {Tang, W. and Yang, Y.-F. and Wang, Z. and Zhang, W. and Zhang, M.-L.},
  booktitle = {NeurIPS},
  year      = {2024},
}""",
    "ProMIPL": """@inproceedings{yang2024promipl,
  title     = {{ProMIPL}: A Generative Probabilistic Disambiguation Model for Multi-Instance Partial-Label Learning},
  author    = {Yang, Y.-F. and others},
  booktitle = {ICDM},
  year      = {2024},
}""",
    "FastMIPL": """@inproceedings{yang2025fastmipl,
  title     = {Fast Multi-Instance Partial-Label Learning},
  author    = {Yang, Y.-F. and Tang, W. and Zhang, M.-L.},
  booktitle = {AAAI},
  year      = {2025},
}""",
    "PL-kNN": """@article{hullermeier2006learning,
  title   = {Learning from Ambiguously Labeled Examples},
  author  = {H{\\"u}llermeier, E. and Beringer, J.},
  journal = {Intelligent Data Analysis},
  volume  = {10},
  number  = {5},
  year    = {2006},
}""",
    "CLPL": """@article{cour2011learning,
  title   = {Learning from Partial Labels},
  author  = {Cour, T. and Sapp, B. and Taskar, B.},
  journal = {Journal of Machine Learning Research},
  volume  = {12},
  year    = {2011},
}""",
    "LSB-CMM": """@inproceedings{liu2012conditional,
  title     = {A Conditional Multinomial Mixture Model for Superset Label Learning},
  author    = {Liu, L. and Dietterich, T. G.},
  booktitle = {NIPS},
  year      = {2012},
}""",
    "SURE": """@inproceedings{feng2019partial,
  title     = {Partial Label Learning with Self-Guided Retraining},
  author    = {Feng, L. and An, B.},
  booktitle = {AAAI},
  year      = {2019},
}""",
    "GM-PLL": """@article{lyu2021gmpll,
  title   = {{GM-PLL}: Graph Matching Based Partial Label Learning},
  author  = {Lyu, G. and Feng, S. and Wang, T. and Lang, C. and Li, Y.},
  journal = {IEEE Transactions on Knowledge and Data Engineering},
  volume  = {33},
  number  = {2},
  year    = {2021},
  eprint  = {1901.03073},
  archiveprefix = {arXiv},
}""",
    "PL-AGGD": """@inproceedings{wang2019adaptive,
  title     = {Adaptive Graph Guided Disambiguation for Partial Label Learning},
  author    = {Wang, D.-B. and Li, L. and Zhang, M.-L.},
  booktitle = {KDD},
  year      = {2019},
}""",
    "VWSGP": """@inproceedings{kandemir2016variational,
  title     = {Variational Weakly Supervised {Gaussian} Processes},
  author    = {Kandemir, M. and Haussmann, M. and Diego, F. and Rajamani, K. and van der Laak, J. and Hamprecht, F. A.},
  booktitle = {BMVC},
  year      = {2016},
}""",
    "VGPMIL": _VGPMIL,
    "LM-VGPMIL": _VGPMIL,
    "MIVAE": """@inproceedings{zhang2021mivae,
  title     = {Non-{I.I.D.} Multi-Instance Learning for Predicting Instance and Bag Labels with Variational Auto-Encoder},
  author    = {Zhang, Weijia},
  booktitle = {IJCAI},
  year      = {2021},
}""",  # noqa: E501
}


def cite(method: Any = None) -> str:
    """BibTeX of the work that a method comes from, or of this library.

    Parameters
    ----------
    method : str or estimator, default=None
        A name of `mipl.methods`, in upper or lower case, or an estimator of the library. None: the library, which is
        also what to cite for BagGP.

    See Also
    --------
    mipl.methods : All names.

    Examples
    --------
    >>> print(cite("SURE"))
    @inproceedings{feng2019partial,
      title     = {Partial Label Learning with Self-Guided Retraining},
      author    = {Feng, L. and An, B.},
      booktitle = {AAAI},
      year      = {2019},
    }
    """
    if method is None:
        return _LIBRARY
    name = method if isinstance(method, str) else _name_of(method)
    known = {each.lower(): _work_of(each) for each in methods()}
    if name.lower() not in known:
        raise ParameterError(f"nothing is known of {name!r}; the methods are {', '.join(methods())}")
    return known[name.lower()]


def _name_of(estimator: Any) -> str:
    """The name of an estimator's method; a learner on plain arrays or binary bags has that of its own class."""
    described = describe(estimator) if hasattr(estimator, "get_params") else None
    return described[0] if described else str(getattr(estimator, "name", type(estimator).__name__))


def _work_of(name: str) -> str:
    """A variant, such as MIPLGP-naive, comes from the work of its method."""
    return _WORKS[name] if name in _WORKS else _WORKS[name.partition("-")[0]]
