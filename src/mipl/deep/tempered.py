"""Attention with a temperature, shared by MIPLMA and ProMIPL."""

from __future__ import annotations

from math import sqrt
from typing import Any

import torch
from torch import Tensor

from mipl.deep.attention import Segments, segment_softmax, segment_standardize
from mipl.deep.encoder import Encoder
from mipl.deep.network import AttentionNetwork

__all__ = ["TemperedNetwork"]


class TemperedNetwork(AttentionNetwork):
    r"""Attention :math:`\mathrm{softmax}_j\big(s_j / (\sqrt L\, \tau)\big)` of scores standardised within the bag.

    Standardised are :math:`s_j = (\mathrm{score}_j - \mathrm{mean}) / (\mathrm{deviation} + \epsilon)`. The two scores
    of a bag of two come close to each other now and then while the instances differ, and the gradient of that step is
    up to :math:`1 / \epsilon` long. With the published 1e-8 about one fit in a hundred on small bags ends in NaN.

    After each epoch :math:`\tau \leftarrow \max(\tau_{min}, \mathrm{decay} \cdot \tau)`; prediction uses the last one.

    Parameters
    ----------
    encoder : Encoder
        From raw instances to hidden vectors.
    n_hidden : int
        L.
    temperature, decay, min_temperature : float
        The temperature of the first epoch, its factor per epoch and its lower bound.
    min_deviation : float
        The epsilon added to the deviation.
    **params
        Of `AttentionNetwork`.
    """

    temperature: Tensor

    def __init__(
        self,
        encoder: Encoder,
        *,
        n_hidden: int,
        temperature: float,
        decay: float,
        min_temperature: float,
        min_deviation: float,
        **params: Any,
    ) -> None:
        super().__init__(encoder, n_hidden=n_hidden, **params)
        self.root = sqrt(n_hidden)
        self.decay = decay
        self.min_temperature = min_temperature
        self.min_deviation = min_deviation
        self.register_buffer("temperature", torch.tensor(float(temperature)))

    def attend(self, score: Tensor, segments: Segments) -> Tensor:
        """Attention (n, 1) from scores (n, 1); the one instance of a bag of one has it all."""
        standard = segment_standardize(score, segments, self.min_deviation)
        return segment_softmax(standard / (self.root * self.temperature), segments)

    def end_epoch(self) -> None:
        """Cool down."""
        self.temperature.mul_(self.decay).clamp_(min=self.min_temperature)
