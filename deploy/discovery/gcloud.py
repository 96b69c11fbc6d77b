#!/usr/bin/env -S python3 -B
"""Hosts of a managed instance group of Google Cloud, for --host-discovery-script.

A machine is listed while it is RUNNING, the group is not about to delete, stop or replace it, and each health check of
the group calls it HEALTHY. It needs gcloud, with an account that may list the instances of the group.

    gcloud.py --group train --zone europe-west4-a --slots 8
"""

import argparse
import re
import sys
from typing import Any

import recipe

STAYS = ("NONE", "VERIFYING", "REFRESHING")  # actions of the group on a machine that goes on serving
URL = re.compile(r".*/projects/([^/]+)/zones/([^/]+)/instances/([^/]+)")
REMEDIES = (
    ("not currently have an active account", "give this machine a service account, or run `gcloud auth login`"),
    ("Reauthentication", "run `gcloud auth login`"),
    ("was not found", "check --group, --zone, --region and --project"),
    ("PERMISSION_DENIED", "allow compute.instanceGroupManagers.get"),
    ("Required '", "allow the permission that the line names"),
    ("[project]", "give --project"),
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this recipe."""
    recipe.option(parser, "group", "the name of the managed instance group")
    recipe.option(parser, "zone", "the zone of a group of one zone")
    recipe.option(parser, "region", "the region of a group of several zones")
    recipe.option(parser, "project", "the project; without it, gcloud decides")
    recipe.option(
        parser, "address", "which name a host has: its DNS name in its zone, or short", "zonal", ("zonal", "short")
    )


def serves(instance: Any) -> bool:
    """Say whether a machine of the group runs, stays, and is healthy as far as that is checked."""
    health = [check.get("detailedHealthState") for check in instance.get("instanceHealth") or []]
    return (
        instance.get("instanceStatus") == "RUNNING"
        and instance["currentAction"] in STAYS
        and all(state == "HEALTHY" for state in health)
    )


def name_of(instance: Any, address: str) -> str:
    """Return the name by which other machines of the network find this one."""
    found = URL.fullmatch(instance["instance"])
    if not found:
        raise recipe.RecipeError(f"gcloud: {instance['instance']!r} is no URL of an instance; report this")
    project, zone, name = found.groups()
    if address == "short":
        return name
    if ":" in project:  # a project of a domain: its DNS names have another form
        raise recipe.RecipeError(f"gcloud: DNS names of project {project} are not known; give --address short")
    return f"{name}.{zone}.c.{project}.internal"


def ask(options: argparse.Namespace) -> list[recipe.Host]:
    """Return the machines of the group that serve."""
    recipe.need(options, "group")
    if bool(options.zone) == bool(options.region):
        raise recipe.RecipeError("--zone or --region must be given, and not both; a group has one of the two")
    gcloud = recipe.Tool("gcloud", "install the Google Cloud CLI", REMEDIES, options)
    words = ["compute", "instance-groups", "managed", "list-instances", options.group, "--format=json", "--quiet"]
    words += ["--zone", options.zone] if options.zone else ["--region", options.region]
    words += ["--project", options.project] if options.project else []
    return [(name_of(instance, options.address), None) for instance in gcloud.ask(words) if serves(instance)]


if __name__ == "__main__":
    sys.exit(recipe.main(__doc__, ask, add_options))
