#!/usr/bin/env -S python3 -B
"""Hosts of a Ray cluster, for --host-discovery-script.

A node is listed by its address while Ray calls it alive. The script runs on a node of the cluster, with a Python that
has the package ray of the cluster's version (--python). A node's slots are its GPUs with --resource GPU, or its amount
of any other resource of Ray; without --resource they are those of --slots. Each question is a short driver of Ray.

    ray_nodes.py --resource GPU --head no --python /opt/ray/bin/python
"""

import argparse
import sys
from typing import Any

import recipe

HEAD = "node:__internal_head__"  # a resource that the head node alone has
REMEDIES = (
    ("No module named 'ray'", "name a Python that has Ray with --python"),
    ("Could not find any running Ray instance", "run this on a node of the cluster, or give --cluster"),
    ("Failed to connect to GCS", "check --cluster, and that the head node runs"),
    ("GCS server", "check --cluster, and that the head node runs"),
    ("Version mismatch", "name the Python of the cluster with --python"),
)
# Ray prints on standard output too, so the answer goes to a copy of that, which Ray does not know. A folder "ray" in
# the working directory is not the package.
QUESTION = """
import json, os, sys
sys.path[:] = [path for path in sys.path if path]
answer = os.dup(1)
os.dup2(2, 1)
import ray
ray.init(address=sys.argv[1], logging_level="ERROR", log_to_driver=False)
with os.fdopen(answer, "w") as file:
    json.dump([{k: node[k] for k in ("Alive", "NodeManagerAddress", "Resources")} for node in ray.nodes()], file)
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this recipe."""
    recipe.option(parser, "cluster", "the address of the cluster, HOST:PORT", "auto")
    recipe.option(parser, "python", "the Python that has Ray", "python3")
    recipe.option(parser, "resource", "the resource of Ray that a node's slots are counted by")
    recipe.option(parser, "head", "whether the head node is a host of the training too", "yes", ("yes", "no"))


def host_of(node: Any, resource: str) -> recipe.Host:
    """Return the host that a node is. A node without the resource has no slots."""
    slots = int(node["Resources"].get(resource, 0)) if resource else None
    return node["NodeManagerAddress"], slots


def ask(options: argparse.Namespace) -> list[recipe.Host]:
    """Return the nodes that are alive."""
    python = recipe.Tool(options.python, "name a Python that has Ray with --python", REMEDIES, options)
    return [
        host_of(node, options.resource)
        for node in python.ask(["-", options.cluster], QUESTION)
        if node["Alive"] and (options.head == "yes" or HEAD not in node["Resources"])
    ]


if __name__ == "__main__":
    sys.exit(recipe.main(__doc__, ask, add_options))
