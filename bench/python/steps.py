"""Times of DDP steps: steps.py hvd|gloo COUNT SHAPE... Rank 0 notes each step after the first ones."""

import sys

import common
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

WARM = 5 # DDP arranges its buckets in the second step

backend, count, shapes = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
if backend == "hvd":
    import hvd_elastic.torch  # noqa: F401 (makes the name known)
dist.init_process_group(backend)
for shape in shapes:
    model = DistributedDataParallel(common.model_of(shape))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    x = common.input_of(shape)
    for number in range(WARM + count):
        began = common.now_us()
        common.step(model, optimizer, x)
        if number >= WARM and dist.get_rank() == 0:
            common.note(shape, common.now_us() - began)
dist.destroy_process_group()
