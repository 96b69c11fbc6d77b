"""Adds up numbers in a commit loop: sums.py STEPS [SIZE]. Each rank adds its share of 1 in each step.

With SIZE no step after the first half is made before a round of so many workers has been seen.
"""

import os
import sys

import hvd_elastic
import numpy
from hvd_elastic import _calls as calls

steps = int(sys.argv[1])
awaited = int(sys.argv[2]) if len(sys.argv) > 2 else 0
hvd_elastic.init()
state = hvd_elastic.State(sums=numpy.zeros(1000), step=0, seen=0)
gradient = numpy.empty(1000)
address = gradient.ctypes.data


@hvd_elastic.run
def train(state: hvd_elastic.State) -> None:
    print("round of", hvd_elastic.size(), "rank", hvd_elastic.rank(), "pid", os.getpid(), flush=True)
    if hvd_elastic.size() == awaited:
        state.seen = 1
    while state.step < steps:
        if awaited and state.step == steps // 2 and not state.seen:
            state.commit()
            continue
        gradient[:] = 1 / hvd_elastic.size()
        calls.run(calls.KIND["allreduce"], address, address, 1000, calls.DTYPE["float64"])
        state.sums += gradient
        state.step += 1
        if state.step % 50 == 0 and hvd_elastic.rank() == 0:
            print("step", state.step, flush=True)
        state.commit()


train(state)
print("result", state.step, round(float(state.sums.min()), 6), round(float(state.sums.max()), 6), flush=True)
