"""What C Gaussian processes with one kernel learn: kernel, constant means, and a noise per class."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from gpytorch.kernels import Kernel
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
    """

    def __init__(
        self,
        kernel: Kernel,
        n_classes: int,
        *,
        extra_noise: float,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        super().__init__()
        self.kernel = kernel.to(device=device, dtype=dtype)
        self.mean = torch.nn.Parameter(torch.zeros(n_classes, dtype=torch.float64, device=device))
        raw_noise = math.log(math.expm1(max(extra_noise - NOISE_FLOOR, NOISE_FLOOR)))
        self.raw_noise = torch.nn.Parameter(torch.full_like(self.mean, raw_noise))

    @property
    def extra_noise(self) -> Tensor:
        r"""The learned homoscedastic noise :math:`\tau_c` (C,)."""
        return softplus(self.raw_noise) + NOISE_FLOOR
