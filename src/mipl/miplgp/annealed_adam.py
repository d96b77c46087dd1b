"""Adam with cosine annealing, for a few parameters."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch

__all__ = ["AnnealedAdam"]

_DECAY, _SQUARE_DECAY, _EPSILON = 0.9, 0.999, 1e-8


class AnnealedAdam:
    r"""Adam, whose learning rate falls from its start to zero along half a cosine.

    With gradients :math:`g_t` and averages :math:`m_t = 0.9\, m_{t-1} + 0.1\, g_t`, :math:`v_t = 0.999\, v_{t-1} +
    0.001\, g_t^2`, step t of T is

    .. math:: \theta_t = \theta_{t-1} - \frac{\lambda}{2} \Big(1 + \cos \frac{\pi (t - 1)}{T}\Big)
              \frac{m_t / (1 - 0.9^t)}{\sqrt{v_t / (1 - 0.999^t)} + 10^{-8}} .

    This is `torch.optim.Adam` with `CosineAnnealingLR`. The first of torch's optimizers in a process imports its
    compiler, which takes longer than all of a small fit.

    Parameters
    ----------
    parameters : iterable of torch.nn.Parameter
        What is learned; those without a gradient stay as they are.
    learning_rate : float
        The learning rate at the start.
    steps : int
        T.
    """

    def __init__(self, parameters: Iterable[torch.nn.Parameter], learning_rate: float, steps: int) -> None:
        self._parameters = list(parameters)
        self._learning_rate, self._steps, self._taken = learning_rate, steps, 0
        self._means, self._squares = ([torch.zeros_like(p) for p in self._parameters] for _ in range(2))

    @torch.no_grad()
    def step(self) -> None:
        """Move the parameters by their gradients."""
        rate = self._learning_rate * (1 + math.cos(math.pi * self._taken / self._steps)) / 2
        self._taken += 1
        rate /= 1 - _DECAY**self._taken
        root = math.sqrt(1 - _SQUARE_DECAY**self._taken)
        for parameter, mean, square in zip(self._parameters, self._means, self._squares, strict=True):
            if parameter.grad is not None:
                mean.lerp_(parameter.grad, 1 - _DECAY)
                square.mul_(_SQUARE_DECAY).addcmul_(parameter.grad, parameter.grad, value=1 - _SQUARE_DECAY)
                parameter.addcdiv_(mean, (square.sqrt() / root).add_(_EPSILON), value=-rate)
