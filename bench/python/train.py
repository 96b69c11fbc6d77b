"""A DDP training without end, as the users of each system write it: train.py hvd|torchrun|torchft SHAPE. Rank 0
writes a line after each step. After each step the training can go on from it: by a commit in memory under
hvd-elastic, from a checkpoint under torchrun, and from another replica under torchft."""

import datetime
import os
import sys

import common
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def train_hvd(model, optimizer, x):
    import hvd_elastic
    import hvd_elastic.torch

    dist.init_process_group("hvd")
    state = hvd_elastic.torch.State(model=model, optimizer=optimizer, step=0)

    @hvd_elastic.run
    def train(state):
        ddp = DistributedDataParallel(model, init_sync=False)
        while True:
            common.step(ddp, optimizer, x)
            state.step += 1
            if dist.get_rank() == 0:
                common.note_step(hvd_elastic.round_number(), state.step, dist.get_world_size())
            state.commit()

    train(state)


def train_torchrun(model, optimizer, x):
    dist.init_process_group("gloo")
    path, number = os.path.join(os.environ["PEER_JOB"], "checkpoint"), 0
    if os.path.exists(path):
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        number = saved["step"]
    dist.barrier() # all have read before rank 0 writes
    ddp = DistributedDataParallel(model)
    while True:
        common.step(ddp, optimizer, x)
        number += 1
        if dist.get_rank() == 0:
            common.note_step(int(os.environ["TORCHELASTIC_RESTART_COUNT"]), number, dist.get_world_size())
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": number}, path + ".new")
            os.replace(path + ".new", path)


def train_torchft(model, optimizer, x):
    import torchft

    def load(saved):
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])

    def save():
        return {"model": model.state_dict(), "optimizer": optimizer.state_dict()}

    patience = datetime.timedelta(milliseconds=int(os.environ["TORCHFT_PATIENCE_MS"]))
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    manager = torchft.Manager(
        pg=torchft.ProcessGroupGloo(timeout=patience), load_state_dict=load, state_dict=save, min_replica_size=1,
        timeout=patience, quorum_timeout=patience, connect_timeout=patience, rank=0, world_size=1,
        store_addr="127.0.0.1", store_port=store.port, hostname="127.0.0.1",
        heartbeat_interval=datetime.timedelta(milliseconds=int(os.environ["TORCHFT_BEAT_MS"])))
    ddp, wrapped = torchft.DistributedDataParallel(manager, model), torchft.Optimizer(manager, optimizer)
    while True:
        before = manager.current_step()
        common.step(ddp, wrapped, x)
        if manager.current_step() > before and manager.participating_rank() == 0:
            # the number of the quorum: there is no public name for it
            common.note_step(manager._quorum_id, manager.current_step(), manager.num_participants())


system, shape = sys.argv[1:]
model = common.model_of(shape)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
{"hvd": train_hvd, "torchrun": train_torchrun, "torchft": train_torchft}[system](model, optimizer, common.input_of(shape))
