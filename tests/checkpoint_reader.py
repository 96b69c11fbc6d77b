"""Reads a checkpoint with nothing but docs/checkpoints.md: checkpoint_reader.py DIR/commit-12.5 [OUT]

Verifies COMPLETE and the checksum of each chunk, opens each file with the safetensors package, and prints each entry:
file, name, type, count, sum of the values. OUT: writes the entries of the first file there, by the same package.
"""
import json
import pathlib
import sys

import numpy
import safetensors.numpy
import xxhash


def digest(data):
    return f"{xxhash.xxh3_64_intdigest(data) or 1:016x}"


def read(folder):
    """Yields (file, its entries by name) of the checkpoint in this folder."""
    text = (folder / "manifest.json").read_bytes()
    if (folder / "COMPLETE").read_text() != digest(text) + "\n":
        raise ValueError(f"{folder}: not complete")
    manifest = json.loads(text)
    if manifest["format"] != "hvd-checkpoint" or manifest["version"] > 1:
        raise ValueError(f"{folder}: version {manifest['version']}")
    for file in manifest["files"]:
        data = (folder / file["name"]).read_bytes()
        chunks = [data[at:at + manifest["chunk_bytes"]] for at in range(0, len(data), manifest["chunk_bytes"])]
        if len(data) != file["bytes"] or "".join(map(digest, chunks)) != file["sums"]:
            raise ValueError(f"{folder}/{file['name']}: damaged")
        yield file, safetensors.numpy.load_file(folder / file["name"])


if __name__ == "__main__":
    for number, (file, entries) in enumerate(read(pathlib.Path(sys.argv[1]))):
        for name, values in sorted(entries.items()):
            print(file["rank"], name, values.dtype, values.size, numpy.sum(values, dtype=numpy.float64))
        if number == 0 and len(sys.argv) > 2:
            safetensors.numpy.save_file(entries, sys.argv[2])
