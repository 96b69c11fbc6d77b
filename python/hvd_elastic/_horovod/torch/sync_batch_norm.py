"""Batch normalisation over the batches of all ranks."""

from __future__ import annotations

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from ...torch import ops


class SyncBatchNorm(_BatchNorm):
    """BatchNorm whose mean and variance are those of the batches of all ranks together, in training."""

    def _check_input_dim(self, tensor: torch.Tensor) -> None:
        if tensor.dim() < 2:
            raise ValueError(f"SyncBatchNorm: an input of {tensor.dim()} dimensions; give at least 2")

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        self._check_input_dim(tensor)
        if not self.training and self.track_running_stats:
            return super().forward(tensor)
        axes = [axis for axis in range(tensor.dim()) if axis != 1]
        shape = [1, -1] + [1] * (tensor.dim() - 2)
        count = tensor.new_full((1,), tensor.numel() // tensor.shape[1])
        sums = torch.cat([tensor.sum(axes), tensor.square().sum(axes), count])
        sums = ops.allreduce(sums, "sum")
        features = tensor.shape[1]
        total = sums[-1]
        mean = sums[:features] / total
        variance = sums[features : 2 * features] / total - mean.square()
        if self.track_running_stats and self.running_mean is not None and self.running_var is not None:
            with torch.no_grad():
                if self.num_batches_tracked is not None:
                    self.num_batches_tracked += 1
                factor = self.momentum if self.momentum is not None else 1.0 / float(self.num_batches_tracked or 1)
                self.running_mean.lerp_(mean, factor)
                self.running_var.lerp_(variance * total / (total - 1), factor)
        result = (tensor - mean.view(shape)) * torch.rsqrt(variance + self.eps).view(shape)
        if self.affine:
            result = result * self.weight.view(shape) + self.bias.view(shape)
        return result
