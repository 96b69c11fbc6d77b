#!/usr/bin/env python3
"""The metadata services of three clouds for tests, as they are documented, with faults on demand.

    metadata_server.py ADDRESS FILE      FILE gets "ADDRESS:PORT" when the server is ready

Each host has an address of its own, ADDRESS:PORT/HOST, which an agent takes for its service. A request for /-/... is for
the test:

    /-/notice?host=H&cloud=aws&in=120            a notice for that host, with its deadline in so many seconds; kind=
                                                 terminate, stop, rebalance, lifecycle (aws); preempted, maintenance (gcp);
                                                 Preempt, Terminate, Reboot, Freeze, other (azure: of another machine)
    /-/clear?host=H                              the notice is withdrawn
    /-/fault?host=H&kind=K                       from now on: hang, rubbish, wrong, oversized, redirect, slow (5 s), 500,
                                                 cut, none; 401: the token of AWS is not valid any more, and no new
                                                 one is either while the fault lasts
    /-/skew?host=H&s=3600                        the clock of the service is so many seconds ahead of that of this machine
    /-/counts?host=H                             "requests 12 denied 0 acknowledged 1 strayed 0"

denied: requests that the real service would refuse (no token, no header); strayed: requests that followed a redirection.
"""
import http.server
import json
import os
import sys
import threading
import time
import urllib.parse
from email.utils import formatdate

changed = threading.Condition()
hosts = {}
EVENTS = ("Preempt", "Terminate", "Reboot", "Redeploy", "Freeze", "other")
PATIENCE = 60


class Host:
    def __init__(self):
        self.notice = None  # (cloud, kind, wall time)
        self.fault = "none"
        self.skew = 0.0
        self.version = 0
        self.token = "AQAEAL-t0ken-0=="
        self.counts = {"requests": 0, "denied": 0, "acknowledged": 0, "strayed": 0}

    def now(self):
        return time.time() + self.skew


def stamp(wall):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(wall))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def date_time_string(self, timestamp=None):
        return formatdate(timestamp if timestamp else time.time() + self.skew, usegmt=True)

    def answer(self, status, body="", headers=()):
        body = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.skew = 0.0
        url = urllib.parse.urlsplit(self.path)
        query = {name: value[0] for name, value in urllib.parse.parse_qs(url.query).items()}
        try:
            if url.path.startswith("/-/"):
                with changed:
                    self.answer(200, self.control(url.path[3:], query) + "\n")
                return
            name, _, path = url.path[1:].partition("/")
            with changed:
                host = hosts.setdefault(name, Host())
                host.counts["requests"] += 1
                fault = host.fault
            self.skew = host.skew
            if not self.is_broken(host, fault, path):
                self.serve(host, "/" + path, query)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_PUT = do_POST = do_GET

    def control(self, what, query):
        host = hosts.setdefault(query["host"], Host())
        if what == "notice":
            host.notice = (query["cloud"], query.get("kind", ""), host.now() + float(query.get("in", "120")))
        elif what == "clear":
            host.notice = None
        elif what == "fault":
            host.fault = query["kind"]
            if host.fault == "401":
                host.token = f"AQAEAL-t0ken-{host.version + 1}=="
        elif what == "skew":
            host.skew = float(query["s"])
        elif what != "counts":
            return "unknown"
        host.version += 1
        changed.notify_all()
        return " ".join(f"{name} {count}" for name, count in host.counts.items())

    def is_broken(self, host, fault, path):
        """True: the request had its fault, and needs no other answer."""
        if fault == "hang":
            with changed:
                changed.wait_for(lambda: host.fault != "hang", PATIENCE)
            self.close_connection = True
        elif fault == "slow":
            with changed:
                changed.wait_for(lambda: host.fault != "slow", 5)
            return False
        elif fault == "rubbish":
            self.answer(200, bytes(range(256)), [("ETag", "a/b"), ("Metadata-Flavor", "Google")])
        elif fault == "wrong":
            self.answer(200, '{"action": 7, "time": "tomorrow", "Events": {}}', [("Metadata-Flavor", "Google")])
        elif fault == "oversized":
            self.answer(200, '{"action": "' + "x" * (1 << 20) + '"}', [("Metadata-Flavor", "Google")])
        elif fault == "cut":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b'{"action": "termi')
            self.close_connection = True
        elif fault == "redirect":
            server = f"http://{self.headers['Host']}/strayed/"
            self.answer(302, "", [("Location", server), ("Metadata-Flavor", "Google")])
        elif fault == "500" or (fault == "401" and path != "latest/api/token"):
            self.answer(int(fault), "no", [("Metadata-Flavor", "Google")])
        else:
            return False
        return True

    def serve(self, host, path, query):
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if self.path.startswith("/strayed/"):
            for each in hosts.values():
                each.counts["strayed"] += 1
            self.answer(404)
        elif path.startswith("/latest/"):
            self.aws(host, path[len("/latest/") :])
        elif path.startswith("/computeMetadata/v1/instance/"):
            self.gcp(host, path.rpartition("/")[2], query)
        elif path.startswith("/metadata/"):
            self.azure(host, path[len("/metadata/") :], query, body)
        else:
            self.answer(404)

    def deny(self, host, status):
        host.counts["denied"] += 1
        self.answer(status)

    def notice_of(self, host, cloud):
        return host.notice[1:] if host.notice and host.notice[0] == cloud else (None, 0)

    def aws(self, host, path):
        if path == "api/token":
            if self.command != "PUT" or not self.headers.get("X-aws-ec2-metadata-token-ttl-seconds"):
                return self.deny(host, 400)
            return self.answer(200, host.token)
        if self.headers.get("X-aws-ec2-metadata-token") != host.token:
            return self.deny(host, 401)
        kind, wall = self.notice_of(host, "aws")
        if path == "meta-data/spot/instance-action" and kind in ("terminate", "stop", "hibernate", ""):
            return self.answer(200, json.dumps({"action": kind or "terminate", "time": stamp(wall)}))
        if path == "meta-data/events/recommendations/rebalance" and kind == "rebalance":
            return self.answer(200, json.dumps({"noticeTime": stamp(wall)}))
        if path == "meta-data/autoscaling/target-lifecycle-state":
            return self.answer(200, "Terminated" if kind == "lifecycle" else "InService")
        return self.answer(404, "not found")

    def gcp(self, host, name, query):
        if self.headers.get("Metadata-Flavor") != "Google":
            return self.deny(host, 403)
        with changed:
            if query.get("wait_for_change") == "true":
                changed.wait_for(
                    lambda: query.get("last_etag") != f"e{host.version}", float(query.get("timeout_sec", PATIENCE))
                )
            kind, _ = self.notice_of(host, "gcp")
            etag = f"e{host.version}"
        if name == "preempted":
            value = "TRUE" if kind in ("preempted", "") else "FALSE"
        elif name == "maintenance-event":
            value = {"maintenance": "TERMINATE_ON_HOST_MAINTENANCE", "migrate": "MIGRATE_ON_HOST_MAINTENANCE"}.get(
                kind or "", "NONE"
            )
        else:
            return self.answer(404)
        return self.answer(200, value, [("ETag", etag), ("Metadata-Flavor", "Google")])

    def azure(self, host, path, query, body):
        if self.headers.get("Metadata") != "true" or "api-version" not in query:
            return self.deny(host, 400)
        if path == "instance/compute/name":
            return self.answer(200, "this_vm")
        if path != "scheduledevents":
            return self.answer(404)
        if self.command == "POST":
            asked = [event["EventId"] for event in json.loads(body)["StartRequests"]]
            with changed:
                host.counts["acknowledged"] += asked == [f"id-{host.version}"]
                changed.notify_all()
            return self.answer(200)
        kind, wall = self.notice_of(host, "azure")
        events = []
        if kind is not None:
            events.append(
                {
                    "EventId": f"id-{host.version}",
                    "EventStatus": "Scheduled",
                    "EventType": "Preempt" if kind in ("", "other") else kind,
                    "ResourceType": "VirtualMachine",
                    "Resources": ["other_vm" if kind == "other" else "this_vm"],
                    "NotBefore": formatdate(wall, usegmt=True),
                    "Description": "",
                    "EventSource": "Platform",
                    "DurationInSeconds": -1,
                }
            )
        return self.answer(200, json.dumps({"DocumentIncarnation": host.version, "Events": events}))


def main():
    address, file = sys.argv[1:3]
    server = http.server.ThreadingHTTPServer((address, 0), Handler)
    server.daemon_threads = True
    with open(file + ".half", "w", encoding="utf-8") as out:
        out.write(f"{address}:{server.server_address[1]}")
    os.rename(file + ".half", file)
    server.serve_forever()


if __name__ == "__main__":
    main()
