"""Raises an exception on rank 0: raises.py WHERE. within: in the training function; behind: after its return.

first: behind, and the other ranks end when the file "go" is there. last: behind, when the file "go" is there.
"""

import select
import sys
from pathlib import Path

import hvd_elastic as hvd

where = sys.argv[1]
state = hvd.State(step=0)


@hvd.run
def train(state: hvd.State) -> None:
    while state.step < 3:
        hvd.barrier()
        if where == "within" and hvd.rank() == 0:
            raise KeyError("a bug")
        state.step += 1
        state.commit()


def wait() -> None:
    while not Path("go").exists():
        select.select([], [], [], 0.01)


train(state)
if hvd.rank() == 0:
    if where == "last":
        wait()
    raise OSError("no space for the last file")
if where == "first":
    wait()
print("ends", flush=True)
