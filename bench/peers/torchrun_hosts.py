"""torchrun for as long as hosts come and go: an agent for each host that DISCOVERY lists, all of
them on this machine. A host that leaves the list has its agent ended; an agent that has ended
though its host is listed is started again.

The meeting place of the agents is here, as it would be outside of all hosts that may go: in an
agent (torchrun's default) it would end the job when that host goes."""

import ctypes
import datetime
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from torch.distributed import TCPStore

HERE = os.path.dirname(os.path.abspath(__file__))
PERIOD_S = 1.0  # what Horovod and hvd-elastic have as well
PATIENCE_S = 5.0


PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


def end_with_launcher():
    """An agent has a session of its own; were this process killed, nobody else would end it."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def discover():
    """{host: slots}, or None when the script has failed."""
    done = subprocess.run([os.environ["DISCOVERY"]], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        return None
    hosts = {}
    for line in done.stdout.split():
        host, _, slots = line.partition(":")
        hosts[host] = int(slots or 1)
    return hosts


def nodes(hosts):
    """torchrun counts agents, not workers: MIN:MAX."""
    if "PEER_NODES" in os.environ:
        return os.environ["PEER_NODES"]
    least = -(-int(os.environ["MIN_NP"]) // max(hosts.values()))
    return f"{least}:{max(least, int(os.environ['MAX_NP']) // min(hosts.values()))}"


class Agents:
    def __init__(self, command):
        self.command = command
        self.store = TCPStore("127.0.0.1", 0, None, True, datetime.timedelta(seconds=60), False)
        self.nodes = None
        self.running = {}

    def start(self, host, slots):
        # Best settings: a failure is looked for each 0.1 s (default 5), restarts never run out
        # (default 0), and a meeting with fewer than MAX agents waits 1 s for others (default 30).
        words = ["--nnodes", self.nodes, "--nproc_per_node", str(slots), "--rdzv_id", "peers",
                 "--rdzv_backend", "c10d", "--rdzv_endpoint", f"127.0.0.1:{self.store.port}",
                 "--rdzv_conf", "is_host=0,last_call_timeout=1", "--max_restarts", "1000000",
                 "--monitor_interval", "0.1"]
        # torch 1.13 with Python 3.11 does not know its own default of these two, nothing for all
        # workers; nothing for a worker that there is not it does.
        words += ["--redirects", "9:1", "--tee", "9:1"]
        env = dict(os.environ, HVD_CHAOS_HOST=host, GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1",
                   PYTHONUNBUFFERED="1")
        self.running[host] = subprocess.Popen(
            [sys.executable, "-m", "torch.distributed.run", *words, *self.command], env=env,
            start_new_session=True, # as each host of ours has, which Linux schedules by
            preexec_fn=end_with_launcher)

    def update(self, hosts):
        for host in [host for host in self.running if host not in hosts]:
            self.end([self.running.pop(host)])
        for host, slots in hosts.items():
            if host not in self.running or self.running[host].poll() is not None:
                self.start(host, slots)

    @staticmethod
    def end(agents):
        for agent in agents:
            agent.terminate()
        until = time.monotonic() + PATIENCE_S
        for agent in agents:
            try:
                agent.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                agent.kill()
                agent.wait()


def main():
    stop = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.append(True))
    folder = tempfile.mkdtemp(prefix="peers-", dir="/dev/shm")
    os.environ.setdefault("PEER_FOLDER", folder)
    agents = Agents(sys.argv[1:] or [os.path.join(HERE, "train_torchrun.py")])
    try:
        while not stop:
            hosts = discover()
            if hosts and agents.nodes is None:
                agents.nodes = nodes(hosts)
            if hosts is not None and agents.nodes:
                agents.update(hosts)
            until = time.monotonic() + PERIOD_S
            while not stop and time.monotonic() < until:
                time.sleep(0.05)
    finally:
        agents.end(list(agents.running.values()))
        shutil.rmtree(folder, ignore_errors=True)


main()
