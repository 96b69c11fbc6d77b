"""The configuration with which an OCI runtime starts a container of an image, as docker does: see containers.sh.

    containers.py IMAGE ROOT NAME NETWORK < settings     prints config.json; IMAGE: what buildah inspect says of it, as a file
    containers.py health IMAGE                           prints the words of the image's HEALTHCHECK, one a line
    containers.py exec CONFIG WORDS...                   prints the process of docker exec in the container of config.json

The settings are lines: user UID:GID; word WORD; env NAME=VALUE; mount SOURCE DESTINATION ro|rw; shm BYTES (0: no /dev/shm);
nofile NUMBER; subordinate UID: without root, as the users from that one on; writable yes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

Object = dict[str, Any]

# The filter of system calls of podman and buildah, nearly that of docker.
SECCOMP = Path("/usr/share/containers/seccomp.json")


def docker_image(file: str) -> Object:
    """What the image says of its containers."""
    config: Object = json.loads(Path(file).read_text())["Docker"]["config"]
    return config


def seccomp() -> Object:
    """The filter for a process without capabilities."""
    given = json.loads(SECCOMP.read_text())
    calls = []
    for rule in given["syscalls"]:
        if rule.get("includes", {}).get("caps"):
            continue
        wanted = rule.get("includes", {}).get("arches", [])
        if wanted and not {"amd64", "x86_64"} & set(wanted):
            continue
        kept = {key: rule[key] for key in ("names", "action", "errnoRet") if key in rule}
        if rule.get("args"):
            kept["args"] = rule["args"]
        calls.append(kept)
    return {"defaultAction": given["defaultAction"], "defaultErrnoRet": given.get("defaultErrnoRet", 1), "syscalls": calls}


def read_settings() -> dict[str, list[str]]:
    settings: dict[str, list[str]] = {}
    for line in sys.stdin.read().splitlines():
        key, _, value = line.partition(" ")
        settings.setdefault(key, []).append(value)
    return settings


def mounts(settings: dict[str, list[str]]) -> list[Object]:
    """Those of docker run --read-only --tmpfs /tmp, and those of the settings."""
    shm = int(settings.get("shm", [str(64 << 20)])[0])
    safe = ["nosuid", "noexec", "nodev"]
    made: list[Object] = [
        {"destination": "/proc", "type": "proc", "source": "proc", "options": safe},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=65536k"]},
        {"destination": "/dev/mqueue", "type": "mqueue", "source": "mqueue", "options": safe},
        {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "mode=1777"]},
    ]
    if shm:
        options = [*safe, "mode=1777", f"size={shm}"]
        made.append({"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": options})
    for line in settings.get("mount", []):
        source, destination, mode = line.split()
        made.append({"destination": destination, "type": "bind", "source": source, "options": ["rbind", mode]})
    return made


def spec(image: Object, root: str, name: str, network: str, settings: dict[str, list[str]]) -> Object:
    """A container without rights, with docker's limits as far as they matter here."""
    user = settings.get("user", [image["User"]])[0].split(":")
    process: Object = {
        "user": {"uid": int(user[0]), "gid": int(user[1]), "umask": 0o22},
        "args": settings.get("word", image.get("Cmd", [])),
        "env": [*image["Env"], f"HOSTNAME={name}", *settings.get("env", [])],
        "cwd": image.get("WorkingDir") or "/",
        "capabilities": {},
        "noNewPrivileges": True,
    }
    if "nofile" in settings:
        number = int(settings["nofile"][0])
        process["rlimits"] = [{"type": "RLIMIT_NOFILE", "soft": number, "hard": number}]
    kinds: list[Object] = [{"type": kind} for kind in ("pid", "ipc", "uts", "mount")]
    users: Object = {}
    if "subordinate" in settings:
        kinds.append({"type": "user"})
        mapping = [{"containerID": 0, "hostID": int(settings["subordinate"][0]), "size": 65536}]
        users = {"uidMappings": mapping, "gidMappings": mapping}
    return {
        "ociVersion": "1.0.2",
        "process": process,
        "root": {"path": root, "readonly": "writable" not in settings},
        "hostname": name,
        "mounts": mounts(settings),
        "linux": {
            **users,
            "namespaces": [*kinds, {"type": "network", "path": network}],
            "seccomp": seccomp(),
            "maskedPaths": ["/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/scsi", "/proc/acpi"],
            "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
        },
    }


def main() -> None:
    if sys.argv[1] == "health":
        words = docker_image(sys.argv[2])["Healthcheck"]["Test"]
        if words[0] != "CMD":
            raise SystemExit(f"HEALTHCHECK needs a shell, or there is none: {words}")
        print("\n".join(words[1:]))
        return
    if sys.argv[1] == "exec":
        process = json.loads(Path(sys.argv[2]).read_text())["process"]
        json.dump({**process, "args": sys.argv[3:]}, sys.stdout)
        return
    image, root, name, network = sys.argv[1:]
    json.dump(spec(docker_image(image), root, name, network, read_settings()), sys.stdout, indent=1)


if __name__ == "__main__":
    main()
