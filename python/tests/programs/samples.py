"""Counts samples: samples.py EPOCHS. After its first epoch it goes on when the file "go" is there."""

import os
import select
import sys

import hvd_elastic as hvd

epochs = int(sys.argv[1])
hvd.init()
sampler = hvd.Sampler(1000, batch=16, seed=3)
state = hvd.State(seen=0)


@hvd.run
def train(state: hvd.State) -> None:
    print("pid", os.getpid(), flush=True)
    while sampler.epoch < epochs:
        for batch in sampler:
            assert len(set(batch)) == len(batch)
            got = hvd.allreduce(len(batch), op=hvd.Sum)
            assert got == batch.total
            state.seen += got
            state.commit()
        if sampler.epoch == 1 and hvd.rank() == 0:
            print("epoch 1", flush=True)
            while not os.path.exists("go"):
                select.select([], [], [], 0.01)
    if hvd.rank() == 0:
        print("done", state.seen, flush=True)


train(state)
