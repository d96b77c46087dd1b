"""A convolution with pooling and ReLU, which keeps little for its gradient."""

from __future__ import annotations

from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, max_pool2d, relu

__all__ = ["PooledConvolution", "channels_last"]


Convolution = TypeVar("Convolution", bound=nn.Conv2d)


def channels_last(layer: Convolution) -> Convolution:
    """The layer, with weights laid out so that convolutions and poolings on a CPU take half the time."""
    layer.weight.data = layer.weight.detach().clone(memory_format=torch.channels_last)
    return layer


class PooledConvolution(nn.Conv2d):
    """Convolve images (n, c, h, w), take the largest of each 2 x 2 pixels, and zero what is negative.

    Has neither stride nor padding. For the gradient of one outcome, 4 bytes of its own and 3 flags are kept; torch's
    three steps one by one keep 40 bytes, most of them what was convolved.
    """

    def forward(self, images: Tensor) -> Tensor:
        """Of images (n, c, h, w), on a CPU by a step of its own."""
        if images.device.type != "cpu":
            return relu(max_pool2d(super().forward(images), 2))
        pooled: Tensor = _ConvolveAndPool.apply(images, self.weight, self.bias)  # type: ignore[no-untyped-call]
        return pooled


class _ConvolveAndPool(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, images: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        convolved = conv2d(images, weight, bias).permute(0, 2, 3, 1).contiguous()  # (n, h, w, c)
        upper_left, upper_right, lower_left, lower_right = _corners(convolved)
        upper, lower = torch.maximum(upper_left, upper_right), torch.maximum(lower_left, lower_right)
        pooled = torch.maximum(upper, lower).relu_()
        # Of equal corners the first one counts, as in torch.
        flags = upper_right > upper_left, lower_right > lower_left, lower > upper
        ctx.save_for_backward(images, weight, pooled, *flags)
        ctx.size = convolved.shape
        return pooled.permute(0, 3, 1, 2)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        images, weight, pooled, upper_is_right, lower_is_right, is_lower = ctx.saved_tensors
        of_pooled = torch.ops.aten.threshold_backward(gradients[0].permute(0, 2, 3, 1), pooled, 0)
        of_convolved = of_pooled.new_empty(ctx.size)
        of_convolved[:, 2 * pooled.shape[1] :] = 0
        of_convolved[:, :, 2 * pooled.shape[2] :] = 0
        upper_left, upper_right, lower_left, lower_right = _corners(of_convolved)
        of_lower = of_pooled * is_lower.to(of_pooled.dtype)
        of_upper = of_pooled.sub_(of_lower)
        torch.mul(of_upper, upper_is_right.to(of_pooled.dtype), out=upper_right)
        torch.mul(of_lower, lower_is_right.to(of_pooled.dtype), out=lower_right)
        torch.sub(of_upper, upper_right, out=upper_left)
        torch.sub(of_lower, lower_right, out=lower_left)
        of_images, of_weight, of_bias = torch.ops.aten.convolution_backward(
            of_convolved.permute(0, 3, 1, 2), images, weight, [weight.shape[0]],
            stride=[1, 1], padding=[0, 0], dilation=[1, 1], transposed=False, output_padding=[0, 0], groups=1,
            output_mask=[ctx.needs_input_grad[0], True, True],
        )  # fmt: skip
        return of_images, of_weight, of_bias


def _corners(pixels: Tensor) -> list[Tensor]:
    """The pixels (n, h, w, c) in the corners of each square of 2 x 2, row by row; an odd last row or column is cut."""
    height, width = (side // 2 * 2 for side in pixels.shape[1:3])
    return [pixels[:, down:height:2, right:width:2] for down in (0, 1) for right in (0, 1)]
