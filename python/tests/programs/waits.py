"""Waits for a rank that does not come: waits.py PHASE. Says so, and what has ended the wait."""

import os
import select
import sys
from pathlib import Path

import hvd_elastic as hvd
import numpy

phase = sys.argv[1]
hvd.init()
if phase != "round":
    hvd.barrier()
if hvd.rank() == 1:
    print("absent", flush=True)
    while not Path("go").exists():
        select.select([], [], [], 0.01)
    sys.exit(1)
print("waits pid", os.getpid(), flush=True)
try:
    if phase == "request":
        hvd.allreduce_async(numpy.ones(4)).wait()
    elif phase == "checkpoint":
        hvd.State().checkpoint().wait()
    elif phase == "gather":
        hvd.allgather_object("x")
    elif phase == "compute":
        select.select([], [], [], 600)
    elif phase == "train":
        hvd.run(lambda: hvd.barrier())()
    else:
        hvd.allreduce(numpy.ones(4))
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(3)
