"""The training step of the peers under Elastic Horovod, and, with PEER_CARE=none, under a Horovod
that is not elastic: the same work without that layer."""

import time

import trainer

import horovod.torch as hvd
import torch

# A worker that joins a running job boots for a while beside the import.
time.sleep(trainer.BOOT_S)
hvd.init()

numbers = torch.ones(trainer.FLOATS)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = torch.nn.Parameter(torch.ones(trainer.STATE_FLOATS), requires_grad=False)


def step():
    numbers.fill_(1)
    hvd.allreduce_(numbers, op=hvd.Sum, name="numbers")
    trainer.work(numbers, hvd.size())


def take_care(state):
    if trainer.CARE == "check":
        state.check_host_updates()
        return
    began_us = trainer.now_us()
    state.commit()
    if hvd.rank() == 0:
        trainer.note("commit", trainer.now_us() - began_us)


@hvd.elastic.run
def train(state):
    # Horovod's driver alone knows the number of the round; this number grows with each round.
    state.round += 1
    while True:
        step()
        state.step += 1
        if hvd.rank() == 0:
            trainer.note_step(state.round, state.step, hvd.size())
        take_care(state)


def train_plainly():
    number = 0
    while True:
        step()
        number += 1
        if hvd.rank() == 0:
            trainer.note_step(1, number, hvd.size())


if trainer.CARE == "none":
    train_plainly()
else:
    train(hvd.elastic.TorchState(model=Model(), step=0, round=0))
