"""transformers.Trainer as it is written for torchrun, with checkpoints of its own: trainer_train.py STEPS FOLDER."""

from __future__ import annotations

import os
import signal
import sys

import torch
from torch.utils.data import Dataset
from transformers import Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

steps, folder = int(sys.argv[1]), sys.argv[2]


class Numbers(Dataset[dict[str, torch.Tensor]]):
    """Rows that count upwards."""

    def __len__(self) -> int:
        return 400

    def __getitem__(self, number: int) -> dict[str, torch.Tensor]:
        row = (torch.arange(16) + number) % 32
        return {"input_ids": row, "labels": row}


class Model(torch.nn.Module):
    """Scores for the number behind each number. The models of transformers ask CUDA, whose stand-ins cannot answer."""

    def __init__(self) -> None:
        super().__init__()
        self.number, self.score = torch.nn.Embedding(32, 32), torch.nn.Linear(32, 32)

    def forward(self, input_ids: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        scores = self.score(self.number(input_ids))
        loss = torch.nn.functional.cross_entropy(scores[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        return {"loss": loss, "logits": scores}


class Say(TrainerCallback):
    """Prints where the training is. Rank 1 of the first training waits at step 20 for the test, which kills it."""

    def on_train_begin(self, args: object, state: object, control: object, **_: object) -> None:
        self.first = state.global_step == 0  # type: ignore[attr-defined]
        rank, size = os.environ["RANK"], torch.distributed.get_world_size()
        backend = torch.distributed.get_backend()
        print("rank", rank, "of", size, "by", backend, "from step", state.global_step, flush=True)  # type: ignore[attr-defined]

    def on_save(self, args: object, state: object, control: object, **_: object) -> None:
        torch.distributed.barrier()  # each rank has written its file: a kill in between would leave a torn checkpoint
        if os.environ["RANK"] == "0":
            print("saved step", state.global_step, flush=True)  # type: ignore[attr-defined]
        elif self.first and state.global_step == 20:  # type: ignore[attr-defined]
            signal.pause()


torch.manual_seed(1)
model = Model()
arguments = TrainingArguments(
    output_dir=folder,
    max_steps=steps,
    per_device_train_batch_size=4,
    save_steps=10,
    save_total_limit=2,
    learning_rate=1e-3,
    report_to=[],
    disable_tqdm=True,
    use_cpu=True,
    seed=1,
)
trainer = Trainer(model=model, args=arguments, train_dataset=Numbers(), callbacks=[Say()])
os.makedirs(folder, exist_ok=True)
trainer.train(resume_from_checkpoint=get_last_checkpoint(folder))
weights = sum(p.double().sum().item() for p in model.parameters())
print("end: step", trainer.state.global_step, f"weights {weights!r}", flush=True)
