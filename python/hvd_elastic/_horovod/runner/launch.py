"""horovodrun: hvd-elastic under Horovod's name. hvd-elastic knows Horovod's options, and refuses some of them.

Among those that it refuses are some that tune or switch parts that do not exist here. Scripts that were written for
Horovod have them, and mean no harm: horovodrun leaves them out, and says so. All other options reach hvd-elastic.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from ... import _programs

_NO_QUEUE = "operations run in the order of the program, so nothing is collected, negotiated or cached"
_NO_MPI = "nothing of MPI runs"
# An option that is left out -> how many values it has, and why it has no meaning.
_LEFT_OUT: dict[str, tuple[int, str]] = {
    "--cycle-time-ms": (1, _NO_QUEUE),
    "--cache-capacity": (1, _NO_QUEUE),
    "--disable-cache": (0, _NO_QUEUE),
    "--timeline-mark-cycles": (0, _NO_QUEUE),
    "--gloo-timeout-seconds": (1, "--lease and --stall-shutdown bound the silence of a worker"),
    "--mpi-threads-disable": (0, _NO_MPI),
    "--no-hierarchical-allreduce": (0, "the workers of a host always reduce in shared memory first"),
    "--num-nccl-streams": (1, "NCCL has variables of its own, as in --env NCCL_MAX_CTAS=8"),
}
# Options of Horovod that reach hvd-elastic -> how many values they have. An option that is in neither table ends the
# search, as the command begins behind it, or behind its values.
_PASSED_ON: dict[str, int] = {
    **dict.fromkeys(["-np", "--num-proc", "--min-np", "--min-num-proc", "--max-np", "--max-num-proc", "-p", "-i"], 1),
    **dict.fromkeys(["-H", "--hosts", "-hostfile", "--hostfile", "--host-discovery-script", "--slots-per-host"], 1),
    **dict.fromkeys(["--ssh-port", "--ssh-identity-file", "--network-interface", "--network-interfaces"], 1),
    **dict.fromkeys(["--start-timeout", "--elastic-timeout", "--reset-limit", "--output-filename"], 1),
    **dict.fromkeys(["--config-file", "--log-level", "--thread-affinity", "--fusion-threshold-mb"], 1),
    **dict.fromkeys(["--timeline-filename", "--autotune-log-file", "--autotune-warmup-samples"], 1),
    **dict.fromkeys(["--autotune-steps-per-sample", "--autotune-bayes-opt-max-samples"], 1),
    **dict.fromkeys(["--autotune-gaussian-process-noise", "--stall-check-warning-time-seconds"], 1),
    **dict.fromkeys(["--stall-check-shutdown-time-seconds"], 1),
    **dict.fromkeys(["--gloo", "--verbose", "--autotune", "--no-autotune", "--no-torus-allreduce"], 0),
    **dict.fromkeys(["--stall-check", "--no-stall-check", "--hierarchical-allreduce", "--hierarchical-allgather"], 0),
    **dict.fromkeys(["--no-hierarchical-allgather", "--no-timeline-mark-cycles", "--no-mpi-threads-disable"], 0),
    **dict.fromkeys(["--log-with-timestamp", "--log-without-timestamp", "--log-hide-timestamp"], 0),
    "--blacklist-cooldown-range": 2,
}


def translated(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words for hvd-elastic, and a note for each option that was left out."""
    kept: list[str] = []
    notes = []
    at = 0
    while at < len(words):
        name, has_value, _ = words[at].partition("=")
        if name in _LEFT_OUT:
            values, reason = _LEFT_OUT[name]
            notes.append(f"horovodrun: {name} has no meaning here and is left out: {reason}")
        elif name in _PASSED_ON:
            values = _PASSED_ON[name]
        else:
            break
        end = at + 1 + (0 if has_value else values)
        if name in _PASSED_ON:
            kept += words[at:end]
        at = end
    return [*kept, *words[at:]], notes


def run_commandline() -> NoReturn:
    """The program horovodrun: becomes hvd-elastic."""
    words, notes = translated(sys.argv[1:])
    for note in notes:
        print(note, file=sys.stderr)
    path = _programs.find("hvd-elastic")
    sys.stderr.flush()
    os.execv(path, ["hvd-elastic", *words])


__all__ = ["run_commandline", "translated"]
