"""What C Gaussian processes with one kernel learn: kernel, constant means, and a noise per class."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import torch
from gpytorch.kernels import Kernel
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import softplus

__all__ = ["ProcessParameters", "joined"]

# GPyTorch's lower bound of a learned noise.
NOISE_FLOOR = 1e-4


def joined(tensors: Iterable[Tensor]) -> Tensor:
    """The values of several tensors as one vector in double precision, without their history."""
    return torch.cat([tensor.detach().double().reshape(-1) for tensor in tensors])


class ProcessParameters(torch.nn.Module):
    r"""The learned parameters that all engines share.

    Parameters
    ----------
    kernel : gpytorch.kernels.Kernel
        Becomes part of the engine.
    n_classes : int
        C.
    extra_noise : float
        Start value of the learned noises.
    device : torch.device
        Where the engine computes.
    dtype : torch.dtype
        Precision of the kernel's parameters; means and noises are in double precision.
    weights : (n,) array, default=None
        How often each instance counts; None for once. They are not learned.
    """

    def __init__(
        self,
        kernel: Kernel,
        n_classes: int,
        *,
        extra_noise: float,
        device: torch.device,
        dtype: torch.dtype,
        weights: NDArray[np.float64] | None = None,
    ) -> None:
        super().__init__()
        self.weights = None if weights is None else torch.tensor(weights, dtype=torch.float64, device=device)
        self.kernel = kernel.to(device=device, dtype=dtype)
        self.mean = torch.nn.Parameter(torch.zeros(n_classes, dtype=torch.float64, device=device))
        raw_noise = math.log(math.expm1(max(extra_noise - NOISE_FLOOR, NOISE_FLOOR)))
        self.raw_noise = torch.nn.Parameter(torch.full_like(self.mean, raw_noise))

    @property
    def extra_noise(self) -> Tensor:
        r"""The learned homoscedastic noise :math:`\tau_c` (C,)."""
        return softplus(self.raw_noise) + NOISE_FLOOR

    def n_values(self, targets: NDArray[np.float64]) -> float:
        """The number of targets (n, C), an instance counted as often as its weight says."""
        return targets.size if self.weights is None else self.weights.sum().item() * targets.shape[1]

    @torch.no_grad()
    def conditioned_noise(self, noise: NDArray[np.float64]) -> NDArray[np.float64]:
        """The noises (n, C) of a posterior given variances (n, C): the learned part added, divided by the weights."""
        total = noise + self.extra_noise.cpu().numpy()
        divided: NDArray[np.float64] = total if self.weights is None else total / self.weights.cpu().numpy()[:, None]
        return divided

    @torch.no_grad()
    def copies(self, noise: NDArray[np.float64]) -> tuple[float, Tensor]:
        r"""What copies add to twice the negative log evidence, :math:`\sum_{ci} (w_i - 1) \log d_{ci}`.

        The second value (C,) is its derivative by the learned noises; `noise` (n, C) is the given part of d.
        """
        assert self.weights is not None
        total = torch.tensor(noise, device=self.weights.device) + self.extra_noise
        extra = (self.weights - 1)[:, None]
        return (extra * total.log()).sum().item(), (extra / total).sum(0)
