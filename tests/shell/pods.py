"""The manifests of deploy/kubernetes, for tests: rendered, judged, and taken apart for pods.sh.

    pods.py render FOLDER            what kubectl kustomize FOLDER prints: one document after the other
    pods.py check FOLDER             what the manifests contradict each other in, one line each
    pods.py pod FOLDER NAME          the pod template of the Job or StatefulSet NAME, as assignments of bash
    pods.py object FILE              the same of a pod as an API server has it, in JSON

Of a kustomization only `resources` and `images` are known here; another key is an error.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]


class Unique(yaml.SafeLoader):
    """YAML in which no mapping has a key twice: parsers of other programs keep either one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.YAMLError(f"{node.start_mark}: the key {key} stands there twice")
        return super().construct_mapping(node, deep)


def pod_spec(thing: Object) -> Object | None:
    """The pod template of an object that has one."""
    spec = thing.get("spec", {}).get("template", {}).get("spec")
    return spec if isinstance(spec, dict) else None


def containers(spec: Object) -> list[Object]:
    return list(spec.get("initContainers", [])) + list(spec["containers"])


def render(folder: Path) -> list[Object]:
    kustomization = yaml.load((folder / "kustomization.yaml").read_text(), Unique)
    unknown = set(kustomization) - {"apiVersion", "kind", "resources", "images"}
    if unknown:
        raise SystemExit(f"{folder}/kustomization.yaml: this renderer does not know {sorted(unknown)}")
    things: list[Object] = []
    for name in kustomization["resources"]:
        place = folder / name
        if place.is_dir():
            things += render(place)
        else:
            things += [thing for thing in yaml.load_all(place.read_text(), Unique) if thing]
    images = {image["name"]: image for image in kustomization.get("images", [])}
    for thing in things:
        for container in containers(spec) if (spec := pod_spec(thing)) else []:
            image = images.get(container["image"])
            if image:
                container["image"] = image.get("newName", image["name"]) + ":" + image["newTag"]
    return things


def seconds(text: str) -> int:
    """A time as the options of hvd-elastic take it."""
    found = re.fullmatch(r"(\d+)(s|m|h)", text)
    if not found:
        raise SystemExit(f"{text}: not a time")
    return int(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2]]


def words(container: Object) -> list[str]:
    return [str(word) for word in container.get("command", []) + container.get("args", [])]


def option(container: Object, name: str) -> str:
    for word in words(container):
        if word.startswith(f"--{name}="):
            return word.split("=", 1)[1]
    raise SystemExit(f"{container['name']}: --{name} is not given")


def find(things: list[Object], kind: str, name: str) -> Object:
    for thing in things:
        if thing["kind"] == kind and thing["metadata"]["name"] == name:
            return thing
    raise SystemExit(f"there is no {kind} {name}")


def matches(selector: Object, thing: Object) -> bool:
    labels = thing["spec"]["template"]["metadata"]["labels"]
    return selector.items() <= labels.items()


def check_pods(thing: Object) -> list[str]:
    """What a pod template must hold to in itself."""
    faults = []
    spec = pod_spec(thing) or {}
    where = f"{thing['kind']} {thing['metadata']['name']}"
    volumes = [volume["name"] for volume in spec.get("volumes", [])]
    mounted = {mount["name"] for container in containers(spec) for mount in container.get("volumeMounts", [])}
    faults += [f"{where}: volume {name} is not defined" for name in mounted - set(volumes)]
    faults += [f"{where}: volume {name} is not used" for name in set(volumes) - mounted]
    if not spec.get("securityContext", {}).get("runAsNonRoot") or spec["securityContext"].get("runAsUser", 0) == 0:
        faults.append(f"{where}: runs as root")
    if spec.get("automountServiceAccountToken") is not False:
        faults.append(f"{where}: gets a token for the API server, which it does not need")
    for container in containers(spec):
        context = container.get("securityContext", {})
        rights = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
        if context != rights:
            faults.append(f"{where}: {container['name']} has rights that it does not need")
        ports = {port["name"] for port in container.get("ports", [])}
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            http = container.get(probe, {}).get("httpGet")
            if http and http["port"] not in ports:
                faults.append(f"{where}: {probe} asks the port {http['port']}, which is not defined")
    return faults


def check(things: list[Object]) -> list[str]:
    """What the driver, the agents and what stands around them must agree in."""
    faults = []
    driver, agents = find(things, "Job", "train-driver"), find(things, "StatefulSet", "train-agent")
    driver_box, agent_box = (pod_spec(thing)["containers"][0] for thing in (driver, agents))  # type: ignore[index]
    for thing in (driver, agents):
        faults += check_pods(thing)

    host, port = option(agent_box, "join").rsplit(":", 1)
    service = find(things, "Service", host)
    ports = {entry["name"]: entry["port"] for entry in service["spec"]["ports"]}
    if service["spec"].get("clusterIP") != "None" or not matches(service["spec"]["selector"], driver):
        faults.append(f"Service {host} is not headless, or does not select the driver")
    if {port, option(driver_box, "port"), str(ports["agents"])} != {port}:
        faults.append("--join, --port and the Service name different ports")
    metrics = option(driver_box, "metrics").rsplit(":", 1)[1]
    if {metrics} != {str(ports["metrics"])}:
        faults.append("--metrics and the Service name different ports")
    for name, number in (("agents", int(port)), ("metrics", int(metrics))):
        if {"name": name, "containerPort": number} not in driver_box["ports"]:
            faults.append(f"the port {name} of the driver's container is another one")
    allowed = [
        entry["port"]
        for rule in find(things, "NetworkPolicy", "train-driver")["spec"]["ingress"]
        for entry in rule["ports"]
    ]
    if allowed != [int(port), int(metrics)]:
        faults.append("the NetworkPolicy of the driver allows other ports")
    for kind, name, thing in (
        ("NetworkPolicy", "train-driver", driver),
        ("NetworkPolicy", "train-agent", agents),
        ("PodDisruptionBudget", "train-agent", agents),
    ):
        spec = find(things, kind, name)["spec"]
        if not matches(spec.get("podSelector", spec.get("selector"))["matchLabels"], thing):
            faults.append(f"{kind} {name} does not select its pods")
    if not matches(agents["spec"]["selector"]["matchLabels"], agents):
        faults.append("the StatefulSet does not select its pods")
    if agents["spec"]["serviceName"] not in [
        thing["metadata"]["name"] for thing in things if thing["kind"] == "Service"
    ]:
        faults.append("the StatefulSet names a Service that is not there")

    grace = pod_spec(agents)["terminationGracePeriodSeconds"]  # type: ignore[index]
    told = seconds(next(env["value"] for env in agent_box["env"] if env["name"] == "HVD_TERMINATION_GRACE"))
    if not grace - 30 <= told < grace:
        faults.append(f"terminationGracePeriodSeconds is {grace}, HVD_TERMINATION_GRACE {told}")
    return faults


def quoted(entries: list[str]) -> str:
    return "(" + " ".join(shlex.quote(entry) for entry in entries) + ")"


def mounts(spec: Object, container: Object) -> list[str]:
    """KIND NAME PATH SUBPATH MODE, for each mount: KIND is claim, secret, memory or scratch, MODE rw or ro."""
    lines = []
    for mount in container.get("volumeMounts", []):
        volume = next(entry for entry in spec["volumes"] if entry["name"] == mount["name"])
        if "persistentVolumeClaim" in volume:
            kind, name = "claim", volume["persistentVolumeClaim"]["claimName"]
        elif "secret" in volume:
            kind, name = "secret", volume["secret"]["secretName"]
        elif volume.get("emptyDir", {}).get("medium") == "Memory":
            kind, name = "memory", str(volume["emptyDir"]["sizeLimit"]).removesuffix("i")
        elif volume.get("emptyDir") == {}:
            kind, name = "scratch", volume["name"]
        else:
            raise SystemExit(f"{mount['name']}: a kind of volume that this program does not know")
        mode = "ro" if mount.get("readOnly") else "rw"
        lines.append(f"{kind} {name} {mount['mountPath']} {mount.get('subPath', '.')} {mode}")
    return lines


def pod(spec: Object) -> list[str]:
    box = spec["containers"][0]
    inits = spec.get("initContainers", [])
    if len(spec["containers"]) != 1 or len(inits) > 1:
        raise SystemExit("this program knows pods with one container, and at most one before it")
    init = inits[0] if inits else {}
    live = box["livenessProbe"]
    lines = [
        f"pod_uid={spec['securityContext']['runAsUser']}",
        f"pod_gid={spec['securityContext']['fsGroup']}",
        f"pod_grace={spec['terminationGracePeriodSeconds']}",
        f"pod_words={quoted(words(box))}",
        f"pod_env={quoted([entry['name'] + '=' + entry['value'] for entry in box.get('env', [])])}",
        f"pod_mounts={quoted(mounts(spec, box))}",
        f"pod_init_words={quoted(words(init))}",
        f"pod_init_mounts={quoted(mounts(spec, init))}",
        f"pod_probe={quoted(live.get('exec', {}).get('command', []))}",
        f"pod_probe_seconds={live['timeoutSeconds']}",
    ]
    if "httpGet" in live:
        number = next(port["containerPort"] for port in box["ports"] if port["name"] == live["httpGet"]["port"])
        lines.append(f"pod_probe_http={number}{live['httpGet']['path']}")
    else:
        lines.append("pod_probe_http=")
    return lines


def main() -> None:
    verb, folder, *rest = sys.argv[1:]
    if verb == "object":
        print("\n".join(pod(json.loads(Path(folder).read_text())["spec"])))
        return
    things = render(Path(folder))
    if verb == "render":
        print(yaml.safe_dump_all(things, sort_keys=False), end="")
    elif verb == "check":
        faults = check(things)
        print("".join(f"{fault}\n" for fault in faults), end="")
        sys.exit(bool(faults))
    elif verb == "pod":
        kinds = [thing["kind"] for thing in things if thing["metadata"]["name"] == rest[0] and pod_spec(thing)]
        print("\n".join(pod(pod_spec(find(things, kinds[0], rest[0])) or {})))
    else:
        raise SystemExit(f"{verb}: unknown")


if __name__ == "__main__":
    main()
