#!/usr/bin/env -S python3 -B
"""Hosts that a service of Consul has registered, for --host-discovery-script.

A host is listed while all its checks, those of the node and of the service, are passing. It needs curl. The server and
the token are those of Consul's own tools: CONSUL_HTTP_ADDR (http://127.0.0.1:8500) and CONSUL_HTTP_TOKEN. The token
goes to curl by standard input, so it is in no list of processes.

    consul.py --service hvd-agent --slots 8
"""

import argparse
import os
import sys
import urllib.parse

import recipe

REMEDIES = (
    ("(7)", "start the Consul agent, or set CONSUL_HTTP_ADDR"),
    ("(6)", "check the name in CONSUL_HTTP_ADDR"),
    ("error: 403", "set CONSUL_HTTP_TOKEN to a token with node:read and service:read"),
    ("error: 404", "check CONSUL_HTTP_ADDR: it is no server of Consul"),
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this recipe."""
    recipe.option(parser, "service", "the name of the service")
    recipe.option(parser, "datacenter", "the datacenter; without it, that of the server")


def ask(options: argparse.Namespace) -> list[recipe.Host]:
    """Return the hosts of the service whose checks all pass."""
    recipe.need(options, "service")
    server = os.environ.get("CONSUL_HTTP_ADDR") or "http://127.0.0.1:8500"
    server = server if "://" in server else "http://" + server
    curl = recipe.Tool("curl", "install curl", REMEDIES, options)
    url = f"{server.rstrip('/')}/v1/health/service/{urllib.parse.quote(options.service, safe='')}"
    if options.datacenter:
        url += "?dc=" + urllib.parse.quote(options.datacenter, safe="")
    token = os.environ.get("CONSUL_HTTP_TOKEN", "")
    if any(c in token for c in '"\\\r\n'):
        raise recipe.RecipeError("CONSUL_HTTP_TOKEN has a quote, a backslash or a line break; set it to one token")
    entries = curl.ask(
        ["--silent", "--show-error", "--fail", "--globoff", "--config", "-", url],
        f'header = "X-Consul-Token: {token}"\n' if token else "",
    )
    if not entries:
        raise recipe.RecipeError(
            f"consul: {server} knows no service {options.service}, or the token may not see it; check --service"
        )
    return [
        (entry["Service"].get("Address") or entry["Node"]["Address"], None)
        for entry in entries
        if all(check["Status"] == "passing" for check in entry["Checks"])
    ]


if __name__ == "__main__":
    sys.exit(recipe.main(__doc__, ask, add_options))
