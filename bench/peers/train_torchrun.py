"""The training step of the peers under torchrun. It has no commit in memory: its users save a
checkpoint, here to a file in memory that all of them can read, and begin again from it. With
PEER_CARE=none nothing is saved, and RANK and the others may come from anybody."""

import os
import time

import trainer

import torch
import torch.distributed as dist

time.sleep(trainer.BOOT_S)
dist.init_process_group("gloo")

CHECKPOINT = os.path.join(os.environ.get("PEER_FOLDER", "/dev/shm"), "checkpoint")
numbers = torch.ones(trainer.FLOATS)


def load():
    """After the meeting: whoever trained before has ended by now, and nobody saves yet."""
    if trainer.CARE == "commit" and os.path.exists(CHECKPOINT):
        return torch.load(CHECKPOINT)
    return {"step": 0, "round": 0, "weights": torch.ones(trainer.STATE_FLOATS)}


def save(state):
    began_us = trainer.now_us()
    torch.save(state, CHECKPOINT + ".new")
    os.replace(CHECKPOINT + ".new", CHECKPOINT)
    trainer.note("commit", trainer.now_us() - began_us)


state = load()
state["round"] += 1
rank, size = dist.get_rank(), dist.get_world_size()
while True:
    numbers.fill_(1)
    dist.all_reduce(numbers)
    trainer.work(numbers, size)
    state["step"] += 1
    if rank == 0:
        trainer.note_step(state["round"], state["step"], size)
        if trainer.CARE == "commit":
            save(state)
