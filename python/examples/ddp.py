"""DistributedDataParallel that goes on when a worker dies: hvd-elastic -np 2 --min-np 1 -H 127.0.0.1:2 python ddp.py"""

import hvd_elastic
import hvd_elastic.torch
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

epochs = 10
inputs = torch.randn(4000, 16, generator=torch.Generator().manual_seed(1))
dataset = TensorDataset(inputs, inputs.square().mean(dim=1, keepdim=True))
model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
loss_of = torch.nn.MSELoss()

dist.init_process_group("hvd")
sampler = hvd_elastic.torch.Sampler(dataset, batch_size=32)
loader = DataLoader(dataset, batch_sampler=sampler, num_workers=2)
state = hvd_elastic.torch.State(model=model, optimizer=optimizer, losses=torch.zeros(()), steps=0)


@hvd_elastic.run
def train(state: hvd_elastic.torch.State) -> None:
    ddp = DistributedDataParallel(model, init_sync=False)
    print("rank", dist.get_rank(), "of", dist.get_world_size(), "from epoch", sampler.epoch, flush=True)
    while sampler.epoch < epochs:
        for x, y in state.batches(loader):
            optimizer.zero_grad()
            loss = loss_of(ddp(x), y) * sampler.weight
            loss.backward()
            optimizer.step()
            mean = loss.detach().clone()
            dist.all_reduce(mean, op=dist.ReduceOp.AVG)
            state.losses += mean
            state.steps += 1
        if dist.get_rank() == 0:
            print("epochs", sampler.epoch, "loss", state.losses.item() / state.steps, flush=True)
        state.losses.zero_()
        state.steps = 0


train(state)
print("at the end", loss_of(model(dataset.tensors[0]), dataset.tensors[1]).item())
