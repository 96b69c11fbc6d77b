"""`horovod.run`: calls a function in the workers of a new job."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Optional, Union

from ... import _launch


def run(
    func: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Optional[Mapping[str, Any]] = None,
    num_proc: Optional[int] = None,
    min_num_proc: Optional[int] = None,
    max_num_proc: Optional[int] = None,
    slots: Optional[int] = None,
    reset_limit: Optional[int] = None,
    cooldown_range: Optional[Sequence[float]] = None,
    hosts: Optional[str] = None,
    hostfile: Optional[str] = None,
    start_timeout: Optional[float] = None,
    ssh_port: Optional[int] = None,
    ssh_identity_file: Optional[str] = None,
    disable_cache: Optional[bool] = None,
    output_filename: Optional[str] = None,
    verbose: Optional[Union[bool, int]] = None,
    use_gloo: Optional[bool] = None,
    use_mpi: Optional[bool] = None,
    mpi_args: Optional[str] = None,
    network_interfaces: Union[str, Iterable[str], None] = None,
    executable: Optional[str] = None,
    np: Optional[int] = None,
    min_np: Optional[int] = None,
    max_np: Optional[int] = None,
    *,
    host_discovery_script: Optional[str] = None,
    **unknown: Any,
) -> list[Any]:
    """Calls ``func(*args, **kwargs)`` in each worker of a new job, and returns the results in rank order.

    The arguments are the options of hvd-elastic with these names; those of time are seconds. A worker finds horovod
    without an installation. When one dies the function is called again in the others and in the worker that
    replaces it. ``disable_cache`` and ``use_gloo`` change nothing. Raises RuntimeError when the job fails, and
    ValueError for an argument that has no meaning here.
    """
    for name in unknown:
        raise ValueError(f"horovod.run: there is no argument {name!r}; see docs/pytorch.md for those that exist")
    for name, value in {"use_mpi": use_mpi, "mpi_args": mpi_args}.items():
        if value:
            raise ValueError(f"horovod.run: {name}={value!r}: hvd-elastic uses no MPI; leave {name} out")
    return _launch.launch(
        func,
        args,
        kwargs,
        np=_one_of("num_proc", num_proc, "np", np) or (1 if min_num_proc is None and min_np is None else None),
        min_np=_one_of("min_num_proc", min_num_proc, "min_np", min_np),
        max_np=_one_of("max_num_proc", max_num_proc, "max_np", max_np),
        hosts=_only_hosts(hosts, hostfile, host_discovery_script),
        hostfile=hostfile,
        host_discovery_script=host_discovery_script,
        options=[
            *_option("--slots-per-host", slots),
            *_option("--reset-limit", reset_limit),
            *_cooldown(cooldown_range),
            *_option("--start-timeout", None if start_timeout is None else f"{start_timeout:g}s"),
            *_option("--ssh-port", ssh_port),
            *_option("--ssh-identity-file", ssh_identity_file),
            *_option("--output-filename", output_filename),
            *_option("--network-interface", _names(network_interfaces)),
            *(["--verbose"] if verbose else []),
        ],
        python=[executable or sys.executable, "-m", "hvd_elastic.horovod"],
    )


def _one_of(name: str, value: Optional[int], old_name: str, old: Optional[int]) -> Optional[int]:
    """The value of an argument that has two names."""
    if value is not None and old is not None and value != old:
        raise ValueError(f"horovod.run: {name}={value} and {old_name}={old} contradict each other; pass {name} alone")
    return old if value is None else value


def _only_hosts(hosts: Optional[str], hostfile: Optional[str], script: Optional[str]) -> Optional[str]:
    given = {"hosts": hosts, "hostfile": hostfile, "host_discovery_script": script}
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise ValueError(f"horovod.run: {' and '.join(names)} each say which hosts there are; pass one of them")
    return hosts


def _option(name: str, value: Any) -> list[str]:
    return [] if value is None else [name, str(value)]


def _cooldown(seconds: Optional[Sequence[float]]) -> list[str]:
    if seconds is None:
        return []
    if len(seconds) != 2:
        raise ValueError(f"horovod.run: cooldown_range={seconds!r} is no pair; pass (LOW, HIGH) in seconds")
    return ["--blacklist-cooldown-range", *(f"{second:g}s" for second in seconds)]


def _names(interfaces: Union[str, Iterable[str], None]) -> Optional[str]:
    return interfaces if interfaces is None or isinstance(interfaces, str) else ",".join(interfaces)
