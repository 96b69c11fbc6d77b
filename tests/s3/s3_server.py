"""A server of S3 for tests: moto, and before it a front that checks signatures and makes faults.

    PYTHON s3_server.py ADDRESS FILE     PYTHON is that of scripts/moto; FILE, or a pipe, gets the URL when the server is ready

The front computes the signature of each request a second time, as Amazon documents it (Signature Version 4), and
answers 403 where it differs: moto itself believes every signature. A request for /-/... is for the front:

    /-/fault?kind=500&percent=20&seed=1     from now on this fault for so many of 100 requests; kinds with commas
    /-/fault?kind=truncate&next=2           this fault for the next 2 requests
    /-/fault?kind=503&next=9&only=POST      the same for one method
    /-/bucket?name=kept                     makes a bucket
    /-/uploads                              how many uploads in parts are under way: "uploads 1"
    /-/imds/...                             the metadata service (IMDSv2), with credentials that have a session token
    /-/counts                               how many requests and faults there were: "requests 12 faults 3"
"""
import hashlib
import hmac
import http.client
import http.server
import json
import os
import random
import signal
import socket
import struct
import sys
import threading
import urllib.parse

KEYS = {"AKTEST": "sEcret/+123", "AKSESSION": "other"}
TOKENS = {"AKSESSION": "t0ken+/="}
ERRORS = {
    "500": (500, "InternalError", "We encountered an internal error. Please try again."),
    "503": (503, "SlowDown", "Please reduce your request rate."),
    "403": (403, "AccessDenied", "Access Denied"),
    "expired": (400, "ExpiredToken", "The provided token has expired."),
    "skewed": (403, "RequestTimeTooSkewed", "The difference between the times is too large."),
    "region": (400, "AuthorizationHeaderMalformed", "the region 'us-east-1' is wrong; expecting 'eu-west-1'"),
    "full": (507, "QuotaExceeded", "The quota of the bucket is used up."),
}
ANYBODY = "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=x"
lock = threading.Lock()
faults = {"kinds": [], "percent": 0, "next": 0, "only": None, "random": random.Random(1)}
counts = {"requests": 0, "faults": 0}
backend = None


def sign(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def wrong_signature(method, path, headers):
    """None, or the name of the error: the signature of the header Authorization, computed from the request."""
    words = headers.get("Authorization", "").split(" ", 1)
    if words[0] != "AWS4-HMAC-SHA256":
        return "AccessDenied"
    fields = dict(field.strip().split("=", 1) for field in words[1].split(","))
    key_id, day, region, service, end = fields["Credential"].split("/")
    if key_id not in KEYS:
        return "InvalidAccessKeyId"
    if headers.get("x-amz-security-token") != TOKENS.get(key_id):
        return "InvalidToken"
    names = fields["SignedHeaders"].split(";")
    if names != sorted(names) or not {"host", "x-amz-date"} <= set(names) or not all(name in headers for name in names):
        return "SignatureDoesNotMatch"
    if key_id in TOKENS and "x-amz-security-token" not in names:
        return "SignatureDoesNotMatch"
    way, _, query = path.partition("?")
    pairs = sorted(urllib.parse.parse_qsl(query, keep_blank_values=True))
    quote = lambda text: urllib.parse.quote(text, safe="-._~")
    canonical = "\n".join([
        method,
        urllib.parse.quote(urllib.parse.unquote(way), safe="/-._~"),
        "&".join(quote(name) + "=" + quote(value) for name, value in pairs),
        "".join(name + ":" + " ".join(headers[name].split()) + "\n" for name in names),
        ";".join(names),
        headers["x-amz-content-sha256"],
    ])
    scope = "/".join([day, region, service, end])
    text = "\n".join(["AWS4-HMAC-SHA256", headers["x-amz-date"], scope,
                      hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + KEYS[key_id]).encode()
    for part in (day, region, service, end):
        key = sign(key, part)
    good = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    return None if good == fields["Signature"] else "SignatureDoesNotMatch"


class Front(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def reply(self, status, body, headers=(), length=None):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def error(self, status, code, message):
        self.reply(status, f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{message}</Message></Error>".encode(),
                   [("Content-Type", "application/xml")])

    def reset(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def control(self):
        path, _, query = self.path.partition("?")
        fields = dict(urllib.parse.parse_qsl(query))
        with lock:
            if path == "/-/fault":
                faults["kinds"] = fields.get("kind", "").split(",")
                faults["percent"] = int(fields.get("percent", 0))
                faults["next"] = int(fields.get("next", 0))
                faults["only"] = fields.get("only")
                if "seed" in fields:
                    faults["random"] = random.Random(int(fields["seed"]))
            if path == "/-/bucket":
                moto = http.client.HTTPConnection("127.0.0.1", backend)
                moto.request("PUT", "/" + fields["name"], headers={"Authorization": ANYBODY})
                moto.getresponse().read()
            if path == "/-/uploads":
                moto = http.client.HTTPConnection("127.0.0.1", backend)
                moto.request("GET", "/kept?uploads=", headers={"Authorization": ANYBODY})
                return self.reply(200, b"uploads %d\n" % moto.getresponse().read().count(b"<UploadId>"))
            if path.startswith("/-/imds/"):
                return self.metadata(path[len("/-/imds"):])
            body = "requests {requests} faults {faults}\n".format(**counts).encode()
        self.reply(200, body)

    def metadata(self, path):
        role = "/latest/meta-data/iam/security-credentials/"
        if self.command == "PUT" and path == "/latest/api/token" and "X-aws-ec2-metadata-token-ttl-seconds" in self.headers:
            return self.reply(200, b"imds-token")
        if self.command != "GET" or self.headers.get("X-aws-ec2-metadata-token") != "imds-token":
            return self.reply(401, b"")
        if path == role:
            return self.reply(200, b"the-role\n")
        if path == role + "the-role":
            return self.reply(200, json.dumps({"Code": "Success", "AccessKeyId": "AKSESSION", "Token": TOKENS["AKSESSION"],
                                               "SecretAccessKey": KEYS["AKSESSION"]}).encode())
        return self.reply(404, b"")

    def fault(self):
        with lock:
            counts["requests"] += 1
            if faults["only"] not in (None, self.command):
                return None
            chance = faults["random"]
            if faults["next"] > 0:
                faults["next"] -= 1
            elif chance.randrange(100) >= faults["percent"]:
                return None
            counts["faults"] += 1
            return chance.choice(faults["kinds"])

    def serve(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path.startswith("/-/"):
            return self.control()
        kind = self.fault()
        if kind in ERRORS:
            return self.error(*ERRORS[kind])
        if kind == "hang":
            self.close_connection = True
            self.connection.recv(1)  # until the client gives up
            return None
        if kind == "reset":
            return self.reset()
        if kind == "html":
            return self.reply(502, b"<html><body>bad gateway</body></html>")
        wrong = wrong_signature(self.command, self.path, self.headers)
        if wrong:
            return self.error(403, wrong, "the front of the test refuses it")
        upstream = http.client.HTTPConnection("127.0.0.1", backend, timeout=600)
        upstream.request(self.command, self.path, body, {name: value for name, value in self.headers.items()})
        answer = upstream.getresponse()
        content = answer.read()
        upstream.close()
        if kind == "late":  # it was carried out, and the answer is lost
            return self.reset()
        if kind == "late500":
            return self.error(*ERRORS["500"])
        if kind == "error200" and self.command == "POST":
            return self.error(200, *ERRORS["500"][1:])
        headers = [(name, value) for name, value in answer.getheaders()
                   if name.lower() not in ("content-length", "transfer-encoding", "connection", "server", "date")]
        if kind == "truncate" and len(content) > 1:
            self.reply(answer.status, content[: len(content) // 2], headers, len(content))
            return self.reset()
        return self.reply(answer.status, content, headers)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = serve


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def main():
    global backend
    os.environ.setdefault("AWS_ACCESS_KEY_ID", "x")
    os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "x")
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        del os.environ[name]
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server, WSGIRequestHandler
    import logging
    logging.getLogger("werkzeug").disabled = True
    WSGIRequestHandler.protocol_version = "HTTP/1.1"
    moto = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=True)
    backend = moto.server_port
    threading.Thread(target=moto.serve_forever, daemon=True).start()
    server = Server((sys.argv[1], 0), Front)
    with open(sys.argv[2], "w") as file:
        file.write(f"http://{sys.argv[1]}:{server.server_port}\n")
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    server.serve_forever()


main()
