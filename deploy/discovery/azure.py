#!/usr/bin/env -S python3 -B
"""Hosts of a virtual machine scale set of Azure (uniform orchestration), for --host-discovery-script.

A machine is listed by its computer name while its power state is running, it is not being deleted, and the application
health extension, where there is one, calls it healthy. It needs the az CLI, with an account that may read the set.

    azure.py --resource-group lab --group train --slots 8
"""

import argparse
import sys
from typing import Any

import recipe

REMEDIES = (
    ("az login", "give this machine a managed identity and run `az login --identity`, or run `az login`"),
    ("ResourceGroupNotFound", "check --resource-group and the subscription"),
    ("NotFound", "check --group, --resource-group and the subscription"),
    ("was not found", "check --group, --resource-group and the subscription"),
    ("AuthorizationFailed", "give the account the role Reader on the scale set"),
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this recipe."""
    recipe.option(parser, "group", "the name of the scale set")
    recipe.option(parser, "resource-group", "its resource group")
    recipe.option(parser, "subscription", "the subscription; without it, az decides")


def serves(machine: Any) -> bool:
    """Say whether a machine of the scale set runs, stays, and is healthy as far as that is checked."""
    view = machine["instanceView"]
    powers = [status["code"].lower() for status in view["statuses"] if status["code"].startswith("PowerState/")]
    health = ((view.get("vmHealth") or {}).get("status") or {}).get("code", "HealthState/healthy")
    return (
        powers == ["powerstate/running"]
        and machine["provisioningState"] in ("Succeeded", "Updating")
        and health.lower() == "healthstate/healthy"
    )


def ask(options: argparse.Namespace) -> list[recipe.Host]:
    """Return the machines of the scale set that serve."""
    recipe.need(options, "group")
    if not options.resource_group:
        raise recipe.RecipeError("--resource-group is not given; give it, or set DISCOVER_RESOURCE_GROUP")
    az = recipe.Tool("az", "install the Azure CLI", REMEDIES, options)
    words = ["vmss", "list-instances", "--resource-group", options.resource_group, "--name", options.group]
    words += ["--expand", "instanceView", "--only-show-errors", "--output", "json"]
    words += ["--subscription", options.subscription] if options.subscription else []
    return [(machine["osProfile"]["computerName"], None) for machine in az.ask(words) if serves(machine)]


if __name__ == "__main__":
    sys.exit(recipe.main(__doc__, ask, add_options))
