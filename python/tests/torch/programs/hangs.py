"""A program with a backend that does not notice the death of a peer: hangs.py FOLDER."""

from __future__ import annotations

import os
import sys
import threading

import torch.distributed as dist

folder = sys.argv[1]
dist.init_process_group("gloo")
mark = os.path.join(folder, "hung")
epoch = 3 if os.path.exists(mark) else 0
where = f"rank {dist.get_rank()} of {dist.get_world_size()} slot {os.environ['LOCAL_RANK']}"
print(where, "by", dist.get_backend(), "from epoch", epoch, flush=True)
dist.barrier()
if epoch == 0:
    if dist.get_rank() == 0:
        with open(mark, "w"):
            pass
        print("epochs 3", flush=True)
    threading.Event().wait()
