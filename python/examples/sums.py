"""The first job: each worker adds its share of 1 in each step, whatever happens to the others.

hvd-elastic -np 3 --min-np 1 -H 127.0.0.1:3 python sums.py
"""

from array import array

import hvd_elastic as hvd

state = hvd.State(total=array("d", [0.0]), step=0)


@hvd.run
def train(state: hvd.State) -> None:
    print("rank", hvd.rank(), "of", hvd.size(), "from step", state.step)
    while state.step < 10000:
        state.total[0] += hvd.allreduce(1 / hvd.size(), op=hvd.Sum)
        state.step += 1
        state.commit()


train(state)
print("total", round(state.total[0], 6), "after", state.step, "steps")
