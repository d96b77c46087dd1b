r"""How alike two bags are to BagGP as far as a class is concerned.

The log evidence :math:`l_{bc}` of class c in bag b depends on the coefficients :math:`w_c` of the instance logits
through :math:`\psi_{bc} = \partial l_{bc} / \partial w_c = \sum_{j \in b} \frac{R_{jc}}{P_{bc}} \phi_j`: the features
of the instances that would carry c, weighted by how probably they do. With the posterior variance v of the
coefficients, log evidences of two bags are correlated by

.. math:: \rho_c(b, b') = \frac{\psi_{bc}^\top \mathrm{diag}(v) \psi_{b'c}}
    {\sqrt{\psi_{bc}^\top \mathrm{diag}(v) \psi_{bc}} \sqrt{\psi_{b'c}^\top \mathrm{diag}(v) \psi_{b'c}}} .

Directions that the model knows well have a small variance and count little: a correlation is about what is still open.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mipl.bag_posterior import bag_evidence, instance_posterior, segment_sum
from mipl.labelling import ClassSimilarity

__all__ = ["class_similarities"]


def class_similarities(
    features: Tensor,
    logits: Tensor,
    offsets: Tensor,
    variance: Tensor,
    posterior: NDArray[np.float64],
    background: Tensor | None = None,
) -> list[ClassSimilarity]:
    """Correlations of bags for each class, among those for which the class is open.

    Parameters
    ----------
    features : (n, R) tensor
        Features of the instances.
    logits : (n, q) tensor
        Their logits.
    offsets : (m + 1,) tensor
        The bags as segments of the rows.
    variance : (R,) tensor
        Posterior variance of the coefficients.
    posterior : (m, q) array
        Probabilities of the bags' labels.
    background : (q,) bool tensor, default=None
        The class that no instance carries; it says nothing about other bags.
    """
    evidence = bag_evidence(logits, offsets, background)
    carries = instance_posterior(logits, evidence, torch.ones_like(evidence.log_evidence), offsets)
    scale = variance.sqrt().to(features.dtype)
    open_for = (posterior > 0) & (posterior < 1)
    found = []
    for c in range(logits.shape[1]):
        bags = np.flatnonzero(open_for[:, c])
        if background is not None and bool(background[c]):
            bags = bags[:0]
        profile = segment_sum(carries[:, c : c + 1].to(features.dtype) * features, offsets)[torch.as_tensor(bags)]
        profile = torch.nn.functional.normalize(profile * scale, dim=1)
        found.append(ClassSimilarity(bags, (profile @ profile.T).double().cpu().numpy()))
    return found
