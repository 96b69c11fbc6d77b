"""The modules that a program finds under the name horovod; see hvd_elastic.horovod."""

from .runner import run

__hvd_elastic__ = True
__version__ = "0.28.1+hvd"
__all__ = ["run"]
