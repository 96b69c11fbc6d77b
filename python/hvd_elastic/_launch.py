"""hvd_elastic.launch: runs a function as the workers of a job."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional


def _dumps(value: Any) -> bytes:
    """By cloudpickle where it is installed: it takes functions of notebooks, too."""
    try:
        import cloudpickle  # type: ignore[import-untyped]
    except ImportError:
        return pickle.dumps(value)
    return bytes(cloudpickle.dumps(value))


def launch(
    func: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Optional[Mapping[str, Any]] = None,
    *,
    np: Optional[int] = None,
    min_np: Optional[int] = None,
    max_np: Optional[int] = None,
    hosts: Optional[str] = None,
    hostfile: Optional[str] = None,
    host_discovery_script: Optional[str] = None,
    options: Sequence[str] = (),
    env: Optional[Mapping[str, str]] = None,
    folder: Optional[str] = None,
    python: Sequence[str] = (),
) -> list[Any]:
    """Runs ``func(*args, **kwargs)`` on the workers of a new job, and returns the results in rank order.

    The options are those of the program hvd-elastic; ``options`` has more of them. Without hosts all workers run on
    this machine. The function and its results are pickled, by cloudpickle where it is installed, to a folder that
    all hosts see: ``folder``, or a temporary one. When a worker dies the function is called again, so let it go on
    from a State. ``python`` is the interpreter of the workers and its options; default: the interpreter of this
    program. Raises RuntimeError when the job fails.
    """
    import subprocess  # here and not above: these would double the time of `import hvd_elastic`
    import tempfile
    from pathlib import Path

    from . import _programs

    with tempfile.TemporaryDirectory(prefix="hvd-launch-", dir=folder) as name:
        task, result = Path(name) / "task", Path(name) / "result"
        task.write_bytes(_dumps((func, tuple(args), dict(kwargs or {}))))
        if hosts is None and hostfile is None and host_discovery_script is None:
            hosts = f"127.0.0.1:{max_np or np or 1}"
        given = {"-np": np, "--min-np": min_np, "--max-np": max_np, "-H": hosts, "--hostfile": hostfile}
        given["--host-discovery-script"] = host_discovery_script
        command = [_programs.find("hvd-elastic")]
        for option, value in given.items():
            command += [] if value is None else [option, str(value)]
        worker = [*(python or [sys.executable]), "-m", "hvd_elastic._task", str(task), str(result)]
        paths = os.pathsep.join([str(Path(__file__).parent.parent), *filter(None, sys.path)])
        environment = {**os.environ, "PYTHONPATH": paths, **(env or {})}
        code = subprocess.run([*command, *options, "--", *worker], env=environment, check=False).returncode
        if code != 0 or not result.exists():
            raise RuntimeError(
                f"the job of {getattr(func, '__name__', 'the function')} ended with exit code {code}; "
                "its output above says why"
            )
        results: list[Any] = pickle.loads(result.read_bytes())
        return results
