"""The environment of torch.distributed for a program that keeps its own backend: `hvd-elastic --torch-env`.

hvd-elastic is the launcher of a job of fixed size then, which is started anew after each loss. What torchrun gives, the
program finds: its exact place, and the address of a store. Rank 0 serves the store in its process, on a port that the
kernel has chosen, so no port is looked for and lost again; all ranks come to it as clients, as under torchrun.

A backend that waits for a dead peer would hang, so a thread ends this process a while after the round is over.
"""

from __future__ import annotations

import importlib
import os
import select
import socket
import sys
import threading
import time
from typing import Any

from . import _lib, _ops
from ._session import Session

SECONDS = 5.0  # in which the program may end by itself, with an error of its backend

_kept: list[Any] = []


def offer(session: Session) -> None:
    """Sets MASTER_ADDR and MASTER_PORT to a store of this round, and watches over the round. All ranks call it."""
    place = None
    if session.place("rank") == 0:
        store = importlib.import_module("torch.distributed").TCPStore
        host = os.environ.get("HOROVOD_HOSTNAME") or socket.gethostname()
        _kept.append(store(host, 0, is_master=True, wait_for_workers=False))
        place = (host, _kept[-1].port)
    host, port = _ops.broadcast_object(place)
    os.environ["MASTER_ADDR"] = host
    os.environ["MASTER_PORT"] = str(port)
    # The store is there already: torch's rendezvous makes rank 0 a client of it, too. Without TORCHELASTIC_RUN_ID no
    # program takes this for torchrun.
    os.environ["TORCHELASTIC_USE_AGENT_STORE"] = "True"
    os.environ["TORCHELASTIC_RESTART_COUNT"] = "0"
    threading.Thread(target=_watch, args=(session,), name="hvd-watch", daemon=True).start()


def _watch(session: Session) -> None:
    """Ends this process, if it does not end by itself, when a member of the round was lost."""
    poll = select.poll()
    descriptor = _lib.lib.hvd_news_fd()
    if descriptor < 0:
        return
    poll.register(descriptor, select.POLLIN)
    while session.inside and session.news() != _lib.E_REVOKED:
        poll.poll(1000)
        if session.news() == _lib.HOSTS_UPDATED:
            time.sleep(1.0)  # the descriptor stays readable, and this program cannot obey
    if not session.inside:
        return
    time.sleep(SECONDS)
    print(
        f"hvd-elastic: another worker was lost {SECONDS:g} s ago, and this one has not ended; it ends now, and "
        "the job is started again",
        file=sys.stderr,
        flush=True,
    )
    os._exit(1)
