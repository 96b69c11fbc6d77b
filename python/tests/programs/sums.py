"""Adds up numbers in a commit loop: sums.py STEPS. Each rank adds its share of 1 in each step."""

import os
import sys

import hvd_elastic
import numpy
from hvd_elastic import _calls as calls

steps = int(sys.argv[1])
hvd_elastic.init()
state = hvd_elastic.State(sums=numpy.zeros(1000), step=0, deaths=numpy.zeros(1, numpy.int64))
gradient = numpy.empty(1000)
address = gradient.ctypes.data


@hvd_elastic.run
def train(state: hvd_elastic.State) -> None:
    print("round of", hvd_elastic.size(), "rank", hvd_elastic.rank(), "pid", os.getpid(), flush=True)
    while state.step < steps:
        gradient[:] = 1 / hvd_elastic.size()
        calls.run(calls.KIND["allreduce"], address, address, 1000, calls.DTYPE["float64"])
        state.sums += gradient
        state.step += 1
        if state.step % 50 == 0 and hvd_elastic.rank() == 0:
            print("step", state.step, flush=True)
        state.commit()


train(state)
print("result", state.step, round(float(state.sums.min()), 6), round(float(state.sums.max()), 6), flush=True)
