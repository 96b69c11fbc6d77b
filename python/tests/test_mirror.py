"""The numbers and structs of _lib.py are those of hvd.h: a C program prints what the header says."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import TREE
from hvd_elastic import _lib

HEADER = TREE / "include" / "hvd" / "hvd.h"
STRUCTS = {
    "hvd_call": _lib.Call,
    "hvd_piece": _lib.Piece,
    "hvd_received": _lib.Received,
    "hvd_batch": _lib.Batch,
    "hvd_place": _lib.Place,
}
ENUMS = {"hvd_code": "", "hvd_dtype": "", "hvd_op": "", "hvd_kind": "", "hvd_batch_mode": ""}


# Functions of hvd.h that the package does not declare, and what it uses in their place.
WITHOUT = {
    **dict.fromkeys(
        [
            "hvd_allgather",
            "hvd_allgather_ragged",
            "hvd_allreduce",
            "hvd_alltoall",
            "hvd_alltoall_ragged",
            "hvd_barrier",
            "hvd_broadcast",
            "hvd_join",
            "hvd_reducescatter",
        ],
        "hvd_start makes every kind of collective",
    ),
    "hvd_elastic_run": "the loop is Python's own, around hvd_elastic_begin and hvd_elastic_next",
    "hvd_group_create": "hvd_group_create_of: a callback into Python from a thread of the library needs the GIL",
    "hvd_state_add_scalar": "a number of Python has no memory of its own: it is part of a custom entry",
    "hvd_state_on_reset": "hvd_elastic_next returns in each round, and the loop calls the functions itself",
}


def code() -> str:
    return re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL)


def fields(struct: str) -> list[str]:
    """The names of a struct's fields, as the header lists them."""
    body = re.search(rf"struct {struct} {{(.*?)}}", code(), re.DOTALL)
    assert body, struct
    return [name for line in body.group(1).split(";") for name in re.findall(r"(\w+)\s*(?:,|$)", line)]


def constants() -> list[str]:
    """The names of all numbers in the header's enums."""
    found: list[str] = []
    for enum in ENUMS:
        body = re.search(rf"enum {enum} {{(.*?)}}", code(), re.DOTALL)
        assert body, enum
        found += re.findall(r"(HVD_\w+)\s*=", body.group(1))
    return found


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """What a C program says: offsets, sizes and numbers by name."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler (cc)")
    folder: Path = tmp_path_factory.mktemp("c")
    lines = [f'printf("{name} %lld\\n", (long long){name});' for name in constants()]
    for struct in STRUCTS:
        lines.append(f'printf("{struct} %zu\\n", sizeof(struct {struct}));')
        lines += [f'printf("{struct}.{f} %zu\\n", offsetof(struct {struct}, {f}));' for f in fields(struct)]
    source = folder / "mirror.c"
    source.write_text("#include <hvd/hvd.h>\n#include <stdio.h>\nint main(void) {\n" + "\n".join(lines) + "\n}\n")
    subprocess.run([compiler, f"-I{TREE / 'include'}", str(source), "-o", str(folder / "mirror")], check=True)
    said = subprocess.run([str(folder / "mirror")], capture_output=True, text=True, check=True).stdout
    return {name: int(number) for name, number in (line.split() for line in said.splitlines())}


@pytest.mark.parametrize("struct", STRUCTS)
def test_struct(told: dict[str, int], struct: str) -> None:
    mirror = STRUCTS[struct]
    names = [name for name, *_ in mirror._fields_]
    listed = fields(struct)
    assert [name.rstrip("_") for name in names[: len(listed)]] == listed
    for name in names[: len(listed)]:
        assert getattr(mirror, name).offset == told[f"{struct}.{name.rstrip('_')}"], name
    assert ctypes.sizeof(mirror) >= told[struct]


def test_numbers(told: dict[str, int]) -> None:
    for name in constants():
        assert getattr(_lib, name[len("HVD_") :]) == told[name], name


def test_functions() -> None:
    """Each function that is declared is in the header, with as many arguments."""
    header = code()
    for name, (_, *arguments) in _lib._FUNCTIONS.items():
        found = re.search(rf"\b{name}\(([^;]*?)\);", header)
        assert found, f"hvd.h has no {name}"
        given = 0 if found.group(1).strip() in ("void", "") else found.group(1).count(",") + 1
        assert given == len(arguments), name


def test_every_function() -> None:
    """Each function of the header is declared, or WITHOUT says why not."""
    header = set(re.findall(r"^HVD_API [^;{]*?\b(hvd_\w+)\(", code(), re.MULTILINE))
    declared = set(_lib._FUNCTIONS) | set(_lib._LATER)
    assert len(header) > 60
    assert header - declared == set(WITHOUT)


def test_later_functions() -> None:
    """Those that an older library may lack are declared right where the header has them."""
    header = code()
    for name, (_, *arguments) in _lib._LATER.items():
        found = re.search(rf"\b{name}\(([^;]*?)\);", header)
        if found:
            given = 0 if found.group(1).strip() == "void" else found.group(1).count(",") + 1
            assert given == len(arguments), name
