"""Writes stand-ins for the CUDA libraries that PyTorch's libraries link but that are not installed.

scripts/torch runs it with the Python of the virtual environment. A stand-in has the symbols that PyTorch leaves
undefined, in the version under which it asks for them; each returns 100, the code for "no device", and writes no
result. So `import torch` works and torch.cuda.is_available() is False; a program that goes on to use CUDA crashes.
"""

import collections
import os
import re
import subprocess
import sys
import sysconfig
import tempfile

# Library -> the prefixes of its symbols. Some symbols are asked for without a version: a prefix says whose they are.
PREFIXES = {
    "libcublas": ("cublas",),
    "libcublasLt": ("cublasLt",),
    "libcudart": ("cuda", "__cuda"),
    "libcudnn": ("cudnn",),
    "libcufft": ("cufft",),
    "libcufile": ("cuFile",),
    "libcupti": ("cupti",),
    "libcurand": ("curand",),
    "libcusolver": ("cusolver",),
    "libcusparse": ("cusparse",),
    "libcusparseLt": ("cusparseLt",),
    "libnccl": ("nccl", "pnccl"),
    "libnvrtc": ("nvrtc",),
    "libnvshmem_host": ("nvshmem",),
}
VERSIONS = {"libnvshmem_host": "NVSHMEM"}  # elsewhere a symbol's version is the name of its library
SECONDS = 120  # for one run of readelf, nm or gcc


def output_of(*command: str) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, timeout=SECONDS).stdout


class Symbols:
    """What the libraries in PyTorch's folder need, have, and leave undefined."""

    def __init__(self, folder: str) -> None:
        self.files = [name for name in os.listdir(folder) if ".so" in name]
        self.needed: set[str] = set()
        self.undefined: dict[str, set[str]] = collections.defaultdict(set)  # by version; "" without one
        self.defined: set[str] = set()
        for name in self.files:
            self._read(os.path.join(folder, name))

    def _read(self, path: str) -> None:
        self.needed.update(re.findall(r"NEEDED.*\[(.*)\]", output_of("readelf", "-d", path)))
        for line in output_of("nm", "-D", path).splitlines():
            kind, name = line.split()[-2:]
            bare, _, version = name.partition("@")
            if kind == "U":
                self.undefined[version.strip("@")].add(bare)
            elif kind not in "wv":
                self.defined.add(bare)

    def wanted_of(self, library: str, version: str) -> list[str]:
        """The symbols that a stand-in for this library has to have."""
        prefixes = PREFIXES[library]
        longer = tuple(p for name, ps in PREFIXES.items() if name != library for p in ps if p.startswith(prefixes))
        loose = {
            name
            for name in self.undefined[""] - self.defined
            if name.startswith(prefixes) and not (longer and name.startswith(longer))
        }
        return sorted(self.undefined.get(version, set()) | loose)


def write(path: str, soname: str, version: str, names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source, script = os.path.join(folder, "stub.c"), os.path.join(folder, "stub.map")
        with open(source, "w") as file:
            file.writelines(f"int {name}(void) {{ return 100; }}\n" for name in names)
        with open(script, "w") as file:
            file.write(f"{version} {{ global: *; }};\n")
        output_of(
            *("gcc", "-shared", "-fPIC", "-w", "-fno-builtin", f"-Wl,-soname,{soname}"),
            *(f"-Wl,--version-script={script}", "-o", path, source),
        )


def main() -> None:
    site = sysconfig.get_paths()["purelib"]
    folder = os.path.join(site, "torch", "lib")
    into = os.path.join(site, "nvidia", "cu13", "lib")  # a folder of the RUNPATH of PyTorch's libraries
    os.makedirs(into, exist_ok=True)
    symbols = Symbols(folder)
    made = 0
    for soname in sorted(symbols.needed):
        library = soname.split(".so")[0]
        if library not in PREFIXES or soname in symbols.files:
            continue
        version = VERSIONS.get(library, soname)
        write(os.path.join(into, soname), soname, version, symbols.wanted_of(library, version))
        made += 1
    if made == 0:
        sys.exit(f"torch_stubs: no library in {folder} links CUDA; is it another build of PyTorch? drop this step")
    print(f"torch_stubs: {made} stand-ins in {into}", file=sys.stderr)


main()
