"""What the trainers of ./dev bench python share: their models, and the lines that they write.

Importing this module notes that the process has begun, so it comes before that of torch."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peers"))
import trainer  # noqa: E402

import torch  # noqa: E402

BATCH = 4


def model_of(shape):
    """"8x256": 8 linear layers of 256 x 256, the same in all processes."""
    layers, width = (int(word) for word in shape.split("x"))
    torch.manual_seed(1)
    return torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(layers)))


def input_of(shape):
    return torch.randn(BATCH, int(shape.split("x")[1]))


def step(model, optimizer, x):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()


note, note_step, now_us = trainer.note, trainer.note_step, trainer.now_us
