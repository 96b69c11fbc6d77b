#!/usr/bin/env -S python3 -B
"""Hosts of an auto-scaling group of AWS, for --host-discovery-script.

A machine is listed while its group says InService and Healthy, and EC2 says running. It needs the aws CLI (1 or 2), and
credentials that may call autoscaling:DescribeAutoScalingGroups and ec2:DescribeInstances.

    aws.py --group train --region eu-central-1 --slots 8
"""

import argparse
import sys

import recipe

FIELDS = {
    "private-ip": "PrivateIpAddress",
    "private-dns": "PrivateDnsName",
    "public-ip": "PublicIpAddress",
    "public-dns": "PublicDnsName",
}
REMEDIES = (
    ("Unable to locate credentials", "give this machine an instance profile, or run `aws configure`"),
    ("Expired", "sign in again, as with `aws sso login`"),
    ("AccessDenied", "allow autoscaling:DescribeAutoScalingGroups and ec2:DescribeInstances"),
    ("UnauthorizedOperation", "allow autoscaling:DescribeAutoScalingGroups and ec2:DescribeInstances"),
    ("specify a region", "give --region"),
    ("Could not connect to the endpoint", "check --region and the network of this machine"),
)
PART = 500  # instances in one question to EC2


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this recipe."""
    recipe.option(parser, "group", "the name of the auto-scaling group")
    recipe.option(parser, "region", "the region; without it, the aws CLI decides")
    recipe.option(parser, "address", "which address names a host", "private-ip", tuple(FIELDS))


def ask(options: argparse.Namespace) -> list[recipe.Host]:
    """Return the machines of the group that serve."""
    recipe.need(options, "group")
    aws = recipe.Tool("aws", "install the aws CLI", REMEDIES, options)
    last = [*(["--region", options.region] if options.region else []), "--output", "json"]
    words = ["autoscaling", "describe-auto-scaling-groups", "--auto-scaling-group-names", options.group]
    groups = aws.ask([*words, *last])["AutoScalingGroups"]
    if not groups:
        raise recipe.RecipeError(f"aws: there is no auto-scaling group {options.group}; check --group and --region")
    serving = [
        instance["InstanceId"]
        for instance in groups[0]["Instances"]
        if instance["LifecycleState"] == "InService" and instance["HealthStatus"].lower() == "healthy"
    ]
    hosts: list[recipe.Host] = []
    for first in range(0, len(serving), PART):
        words = ["ec2", "describe-instances", "--instance-ids", *serving[first : first + PART]]
        for reservation in aws.ask([*words, *last])["Reservations"]:
            for instance in reservation["Instances"]:
                if instance["State"]["Name"] == "running":
                    hosts.append((instance[FIELDS[options.address]], None))
    return hosts


if __name__ == "__main__":
    sys.exit(recipe.main(__doc__, ask, add_options))
