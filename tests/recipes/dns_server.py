#!/usr/bin/env python3
"""A name server on 127.0.0.1:53 for the test of dns.sh, in a network of its own.

The zone is a file with lines of NAME ADDRESS, which is read anew for each question. A name without lines does not exist
(NXDOMAIN). While the zone file is missing, the server does not answer. It prints "ready" when it listens.
"""

import ipaddress
import socket
import struct
import sys
from pathlib import Path
from typing import Optional

NXDOMAIN = 3
TYPES = {1: 4, 28: 6}  # A, AAAA: the version of IP


def name_in(question: bytes) -> tuple[str, int]:
    """Return the name of the question, and where its type stands."""
    labels, at = [], 12
    while question[at]:
        labels.append(question[at + 1 : at + 1 + question[at]].decode())
        at += 1 + question[at]
    return ".".join(labels), at + 1


def answer_to(question: bytes, zone: Path) -> Optional[bytes]:
    """Return the answer; None: the server keeps silent."""
    if not zone.exists():
        return None
    name, at = name_in(question)
    (kind,) = struct.unpack_from("!H", question, at)
    rows = [line.split() for line in zone.read_text().splitlines()]
    known = [ipaddress.ip_address(address) for row, address in rows if row == name.lower()]
    wanted = [address for address in known if address.version == TYPES.get(kind)]
    header = question[:2] + struct.pack("!HHHHH", 0x8580 | (0 if known else NXDOMAIN), 1, len(wanted), 0, 0)
    records = b"".join(
        struct.pack("!HHHIH", 0xC00C, kind, 1, 1, len(address.packed)) + address.packed for address in wanted
    )
    return header + question[12 : at + 4] + records


def main() -> None:
    """Answer questions until the test ends this process."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 53))
    print("ready", flush=True)
    while True:
        question, asker = server.recvfrom(512)
        answer = answer_to(question, Path(sys.argv[1]))
        if answer:
            server.sendto(answer, asker)


if __name__ == "__main__":
    main()
