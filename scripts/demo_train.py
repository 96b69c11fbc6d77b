"""The training of ./dev demo python: DDP on made data, until a file is there and the epoch is through.

demo_train.py --until FILE
"""

import argparse
import hashlib
import os
import time

import hvd_elastic
import hvd_elastic.torch
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--until", required=True)
until = parser.parse_args().until

torch.manual_seed(1)
inputs = torch.randn(3000, 32)
dataset = TensorDataset(inputs, torch.sin(inputs).sum(dim=1, keepdim=True))
model = torch.nn.Sequential(torch.nn.Linear(32, 128), torch.nn.Tanh(), torch.nn.Linear(128, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
dist.init_process_group("hvd")
sampler = hvd_elastic.torch.Sampler(dataset, batch_size=10)
loader = DataLoader(dataset, batch_sampler=sampler)
state = hvd_elastic.torch.State(model=model, optimizer=optimizer, steps=0, loss=0.0, is_asked=False)


@hvd_elastic.run
def train(state):
    ddp = DistributedDataParallel(model, init_sync=False)
    while not state.is_asked:
        for x, y in state.batches(loader):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(ddp(x), y) * sampler.weight
            loss.backward()
            optimizer.step()
            state.steps += 1
            told = torch.tensor([loss.item(), float(os.path.exists(until))])
            dist.all_reduce(told, op=dist.ReduceOp.AVG)
            state.loss += (told[0].item() - state.loss) / min(state.steps, 50)  # of the last steps
            state.is_asked = state.is_asked or told[1].item() > 0
            if state.steps % 50 == 0 and dist.get_rank() == 0:
                print(f"step {state.steps} epoch {sampler.epoch} loss {state.loss:.4f}", flush=True)
            time.sleep(0.01)


train(state)
digest = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest()[:16]
if dist.get_rank() == 0:
    print(f"{state.steps} steps: {sampler.epoch} epochs", flush=True)
print("final params", digest, flush=True)
