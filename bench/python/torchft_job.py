"""A job of torchft on this machine: torchft_job.py REPLICAS COMMAND... starts a lighthouse and so many replicas of one
worker, and starts each again that has died. TORCHFT_DEAD_MS and TORCHFT_JOIN_MS: the timeouts of the lighthouse."""

import os
import signal
import socket
import subprocess
import sys

count, command = int(sys.argv[1]), sys.argv[2:]
children = []


def start(words, **env):
    children.append(subprocess.Popen(words, env=dict(os.environ, **env)))


def end(*_):
    for child in children:
        child.kill()
    os._exit(1)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


signal.signal(signal.SIGTERM, end)
port = free_port()
start([os.path.join(os.path.dirname(sys.executable), "torchft_lighthouse"), "--bind", f"127.0.0.1:{port}",
       "--min_replicas", "1", "--quorum_tick_ms", "10", "--heartbeat_timeout_ms", os.environ["TORCHFT_DEAD_MS"],
       "--join_timeout_ms", os.environ["TORCHFT_JOIN_MS"]])
for _ in range(count):
    start(command, TORCHFT_LIGHTHOUSE=f"http://127.0.0.1:{port}")
while True:
    pid, _ = os.waitpid(-1, 0)
    if pid == children[0].pid:
        end()
    children[:] = [child for child in children if child.pid != pid]
    start(command, TORCHFT_LIGHTHOUSE=f"http://127.0.0.1:{port}")
