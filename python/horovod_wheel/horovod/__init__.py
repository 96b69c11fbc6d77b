"""The name horovod: `import horovod.torch` finds hvd_elastic's modules."""

from hvd_elastic import horovod as _drop_in

_drop_in.become(__name__)
