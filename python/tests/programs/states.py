"""The class State without a driver: states.py FOLDER. Prints "ok NAME" for each check that holds."""

from __future__ import annotations

import array
import sys
from pathlib import Path

import hvd_elastic as hvd
import numpy

folder = Path(sys.argv[1])
values = numpy.arange(6.0).reshape(2, 3)
plain = array.array("i", [1, 2, 3])
state = hvd.State(
    values=values,
    step=numpy.array(0),
    flags=numpy.zeros(3, bool),
    plain=plain,
    text="begin",
    table={"lr": 0.1},
)
later: hvd.State


def raises(kind: type[BaseException], text: str, function: object, *arguments: object) -> None:
    said = ""
    try:
        function(*arguments)  # type: ignore[operator]
    except kind as error:
        said = f"refused: {error}"
    print(said)
    assert said, f"{kind.__name__} was not raised"
    assert text in said, said


def in_place() -> None:
    hvd.barrier()
    state.values += 1
    state.step += 1
    state.flags[1] = True
    state.plain[0] = 7
    state.text = "one"
    state.table["lr"] = 0.2
    state.commit()
    state.values[:] = 0
    state.step = numpy.array(9)  # copied into the registered memory
    state.flags[:] = False
    plain[0] = 0
    state.text = "two"
    state.table = {}
    state.restore()
    assert state.values is values
    assert (values == numpy.arange(6.0).reshape(2, 3) + 1).all()
    assert state.step == 1
    assert state.flags.tolist() == [False, True, False]
    assert plain[0] == 7
    assert (state.text, state.table) == ("one", {"lr": 0.2})


def assignments() -> None:
    state.values = numpy.ones((2, 3))
    assert state.values is values
    assert (values == 1).all()
    raises(ValueError, "state.values is an array f8[2, 3]", setattr, state, "values", numpy.ones(7))
    raises(ValueError, "cannot become str", setattr, state, "values", "text")
    raises(BufferError, "", plain.append, 4)  # its memory is registered
    raises(ValueError, "'values' already", lambda: hvd.State(values=1))
    raises(ValueError, "commit is a method", lambda: hvd.State(commit=1))


def unpicklable() -> None:
    state.text = lambda: 0
    raises(TypeError, "state.text (function) cannot be pickled", state.commit)
    state.text = "three"
    state.commit()


def room() -> None:
    state.text = "x" * (2 << 20)
    raises(hvd.HvdError, "set HVD_PY_ROOM", state.commit)
    state.text = "four"
    state.commit()


def disk() -> None:
    state.save(str(folder / "saved"))
    state.text = "five"
    values[:] = 5
    assert state.load(str(folder / "saved"))
    assert state.text == "four"
    assert (values == 1).all()
    assert not state.load(str(folder / "none"))


def late() -> None:
    """A State that is made in a round: its arrays travel with the objects, and are changed in place too."""
    global later
    bits = numpy.zeros(2)
    later = hvd.State(bits=bits)
    bits[:] = 3
    later.commit()
    bits[:] = 0
    later.restore()
    assert later.bits is bits
    assert bits.tolist() == [3, 3]


def resets() -> None:
    called: list[int] = []
    state.register_reset_callbacks([lambda: called.append(1)])

    @hvd.run
    def train() -> str:
        if hvd.round_number() and not called:
            state.on_reset()
        return "trained"

    assert train() == "trained"
    assert called == [1]


def errors() -> None:
    raises(hvd.InvalidArgument, "rank", lambda: hvd.broadcast(numpy.zeros(2), root=7))
    raises(hvd.Revoked, "", lambda: hvd.allreduce(1.0))  # the round has failed
    assert hvd.news() == "revoked"


def again() -> None:
    """Another training in this process, as in a notebook; what belongs to the first one is refused in words."""
    text = "of a training that has ended; make another one after hvd_elastic.init()"
    hvd.shutdown()
    raises(hvd.HvdError, "the training of this process has ended", lambda: hvd.allreduce(1.0))
    for times in range(1, 4):
        hvd.init()
        second = hvd.State(values=numpy.zeros(3), step=0)
        sampler = hvd.Sampler(10, batch=4)
        raises(hvd.HvdError, text, state.commit)
        raises(hvd.HvdError, text, later.restore)

        @hvd.run
        def train(second: hvd.State = second, sampler: hvd.Sampler = sampler, times: int = times) -> None:
            while sampler.epoch < times:
                for batch in sampler:
                    second.values += hvd.allreduce(numpy.full(3, len(batch)), op=hvd.Sum)
                    second.step += 1
                    second.commit()

        train()
        assert second.values.tolist() == [10 * times] * 3
        assert second.step == 3 * times
        second.values[:] = 0
        second.restore()
        assert second.values.tolist() == [10 * times] * 3
        hvd.shutdown()
    hvd.init()
    raises(hvd.HvdError, text, sampler.take)
    raises(hvd.HvdError, text, lambda: sampler.epoch)


for check in (in_place, assignments, unpicklable, room, disk, late, resets, again, errors):
    check()
    print("ok", check.__name__, flush=True)
