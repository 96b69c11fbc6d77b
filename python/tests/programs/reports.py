"""Reports values in each step until there is a file: reports.py STOP. Names that are refused do no harm."""

import os
import sys

import hvd_elastic
import numpy

hvd_elastic.init()
state = hvd_elastic.State(step=0)


@hvd_elastic.run
def train(state: hvd_elastic.State) -> None:
    stop = False
    while not stop:
        stop = bool(hvd_elastic.allreduce(float(os.path.exists(sys.argv[1])), op=hvd_elastic.Max))
        state.step += 1
        mine = hvd_elastic.rank() == 0
        assert hvd_elastic.report("loss", numpy.float32(0.5))
        assert hvd_elastic.report("rank", hvd_elastic.rank())
        assert hvd_elastic.report("not/a/number", float("nan"))
        for name in ("", "a b", "<b>", "a\0b", "\x1b[31m", "é", "\udcff", "a" * 64):
            assert hvd_elastic.report(name, 1) is not mine, name
        assert hvd_elastic.report("a" * 63, state.step)
        try:
            hvd_elastic.report("loss", "much")  # type: ignore[arg-type]
        except ValueError:
            assert mine
        else:
            assert not mine
        if state.step == 3:
            print("reported", flush=True)
        state.commit()


train(state)
