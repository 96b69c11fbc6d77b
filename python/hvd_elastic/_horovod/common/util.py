"""The parts that have been built in. A program chooses code paths by them."""


def gloo_built(verbose: bool = False) -> bool:
    return True


def mpi_built(verbose: bool = False) -> bool:
    return False


def nccl_built(verbose: bool = False) -> int:
    """The version of NCCL as a number; 0: there is none."""
    import torch

    if not torch.cuda.is_available():
        return 0
    major, minor, patch = torch.cuda.nccl.version()  # type: ignore[no-untyped-call]
    return int(major * 10000 + minor * 100 + patch)


def cuda_built() -> bool:
    import torch

    return bool(torch.cuda.is_available())


def _no() -> bool:
    return False


def gloo_enabled() -> bool:
    return True


mpi_enabled = mpi_threads_supported = ddl_built = ccl_built = rocm_built = _no
