"""A LightningModule whose workers may die: lightning_train.py EPOCHS."""

from __future__ import annotations

import sys
from typing import Any

import hvd_elastic
import hvd_elastic.torch as hvt
import hvd_elastic.torch.lightning as hvl
import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader, TensorDataset

epochs = int(sys.argv[1])
inputs = torch.randn(600, 16, generator=torch.Generator().manual_seed(1))
dataset = TensorDataset(inputs, inputs.square().mean(dim=1, keepdim=True))


class Module(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.net = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.Adam(self.parameters(), lr=0.01)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.9)]

    def on_train_start(self) -> None:
        print("rank", self.trainer.global_rank, "of", self.trainer.world_size, "from step", state.steps, flush=True)

    def training_step(self, batch: Any, number: int) -> torch.Tensor:
        x, y = batch
        loss: torch.Tensor = torch.nn.functional.mse_loss(self.net(x), y) * sampler.weight
        if self.global_step % 10 == 0 and self.trainer.is_global_zero:
            print("step", self.global_step, "epoch", self.current_epoch, flush=True)
        return loss


module = Module()
sampler = hvt.Sampler(dataset, batch_size=10)
state = hvl.State(module)


@hvd_elastic.run
def train(state: hvl.State) -> None:
    elastic = hvl.Elastic(state, DataLoader(dataset, batch_sampler=sampler))
    trainer = pl.Trainer(
        accelerator="cpu",
        devices=1,
        strategy=hvl.Strategy(),
        callbacks=[elastic],
        max_epochs=epochs,
        use_distributed_sampler=False,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, elastic.loader)


train(state)
rate = state.optimizer0.param_groups[0]["lr"]
weights = sum(p.double().sum().item() for p in module.parameters())
print("end: step", state.steps, "epoch", sampler.epoch, f"rate {rate:.6f} weights {weights!r}", flush=True)
