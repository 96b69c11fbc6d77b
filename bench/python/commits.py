"""Times of a commit and of copy.deepcopy of the same state, in turns: commits.py COUNT SHAPE."""

import copy
import sys

import common
import hvd_elastic
import hvd_elastic.torch
import torch

WARM = 3 # commits that meet pages for the first time

count, shape = int(sys.argv[1]), sys.argv[2]
model = common.model_of(shape)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
state = hvd_elastic.torch.State(model=model, optimizer=optimizer, turn=0)


@hvd_elastic.run
def train(state):
    common.step(model, optimizer, common.input_of(shape))
    values = [*model.parameters(), *(v for s in optimizer.state.values() for v in s.values())]
    common.note("bytes", sum(v.nbytes for v in values))
    while state.turn < WARM + count:
        state.turn += 1
        began = common.now_us()
        state.commit()
        middle = common.now_us()
        copied = copy.deepcopy({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
        ended = common.now_us()
        del copied
        if state.turn > WARM:
            common.note("commit", middle - began)
            common.note("deepcopy", ended - middle)


train(state)
