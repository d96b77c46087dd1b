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

    After each epoch :math:`\tau \leftarrow \max(\tau_{min}, \mathrm{decay} \cdot \tau)`; prediction uses the last one.

    Parameters
    ----------
    encoder : Encoder
        From raw instances to hidden vectors.
    n_hidden : int
        L.
    temperature, decay, min_temperature : float
        The temperature of the first epoch, its factor per epoch and its lower bound.
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
        **params: Any,
    ) -> None:
        super().__init__(encoder, n_hidden=n_hidden, **params)
        self.root = sqrt(n_hidden)
        self.decay = decay
        self.min_temperature = min_temperature
        self.register_buffer("temperature", torch.tensor(float(temperature)))

    def attend(self, score: Tensor, segments: Segments) -> Tensor:
        """Attention (n, 1) from scores (n, 1); the one instance of a bag of one has it all."""
        return segment_softmax(segment_standardize(score, segments) / (self.root * self.temperature), segments)

    def end_epoch(self) -> None:
        """Cool down."""
        self.temperature.mul_(self.decay).clamp_(min=self.min_temperature)
