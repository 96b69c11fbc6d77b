"""Regression with numpy, each sample once in an epoch, whatever happens to the workers.

hvd-elastic -np 3 --min-np 1 -H 127.0.0.1:3 python regression.py
"""

from __future__ import annotations

import sys

import hvd_elastic as hvd
import numpy as np

epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
made = np.random.default_rng(1)
inputs = made.normal(size=(6000, 32))
truth = made.normal(size=32)
wanted = inputs @ truth + 0.1 * made.normal(size=6000)

sampler = hvd.Sampler(len(inputs), batch=20)
state = hvd.State(weights=np.zeros(32), loss=np.zeros(1), steps=0)


@hvd.run
def train(state: hvd.State) -> None:
    print("rank", hvd.rank(), "of", hvd.size(), "from epoch", sampler.epoch, "step", state.steps, flush=True)
    while sampler.epoch < epochs:
        for batch in sampler:
            x, y = inputs[list(batch)], wanted[list(batch)]
            error = x @ state.weights - y
            gradient, loss = hvd.allreduce([x.T @ error, np.array([error @ error])], op=hvd.Sum)
            state.weights -= 0.1 * gradient / batch.total
            state.loss[0] = loss[0] / batch.total
            state.steps += 1
            state.commit()
        if hvd.rank() == 0:
            print("epochs", sampler.epoch, "loss", round(float(state.loss[0]), 4), flush=True)


train(state)
print("off by", round(float(np.abs(state.weights - truth).max()), 3), flush=True)
