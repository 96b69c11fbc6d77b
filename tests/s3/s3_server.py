"""A server of S3 for tests: moto, and before it a front that checks signatures and makes faults.

    PYTHON s3_server.py ADDRESS FILE     PYTHON is that of scripts/moto; FILE, or a pipe, gets the URL when the server is ready

or as two processes, so that the front can be killed and started again while the objects stay:

    PYTHON s3_server.py backend FILE                  moto alone
    PYTHON s3_server.py front ADDRESS:PORT FILE URL   the front of that moto; port 0: any

The front computes the signature of each request a second time, as Amazon documents it (Signature Version 4), and
answers 403 where it differs: moto itself believes every signature. A request for /-/... is for the front:

    /-/fault?kind=500&percent=20&seed=1     from now on this fault for so many of 100 requests; kinds with commas
    /-/fault?kind=truncate&next=2           this fault for the next 2 requests
    /-/fault?kind=503&next=9&only=POST      the same for one method
    /-/bucket?name=kept                     makes a bucket
    /-/uploads                              how many uploads in parts are under way: "uploads 1"
    /-/imds/...                             the metadata service (IMDSv2), with credentials that have a session token
    /-/mirror?prefix=a/&into=DIR            copies the bucket "kept" below the prefix into a new DIR, as soon as no client is
                                            connected and no request is under way (alone=1), else at once
    /-/counts                               how many requests and faults there were: "requests 12 faults 3"
"""
import hashlib
import hmac
import http.client
import http.server
import json
import os
import random
import shutil
import signal
import socket
import struct
import sys
import threading
import urllib.parse
import xml.etree.ElementTree

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
# answers of older servers to a header of conditional writes
UNKNOWN = {
    "unknown501": (501, "NotImplemented", "A header you provided implies functionality that is not implemented"),
    "unknown400": (400, "InvalidArgument", "this header is unknown"),
}
ANYBODY = "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=x"
lock = threading.Lock()
faults = {"kinds": [], "percent": 0, "next": 0, "only": None, "random": random.Random(1)}
counts = {"requests": 0, "faults": 0}
backend = None
PATIENCE = 20  # seconds until nobody is connected any more
IDLE = "/-/idle"


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


def ask_moto(path):
    """The status and the body of moto's answer; moto believes every signature."""
    moto = http.client.HTTPConnection("127.0.0.1", backend, timeout=600)
    moto.request("GET", path, headers={"Authorization": ANYBODY})
    answer = moto.getresponse()
    return answer.status, answer.read()


def idle():
    """Waits until moto carries out no request."""
    return ask_moto(IDLE)[0] == 200


def listed(prefix):
    """The names of all objects of the bucket "kept" below the prefix."""
    names, token = [], ""
    while token is not None:
        page = xml.etree.ElementTree.fromstring(
            ask_moto("/kept?list-type=2&prefix=" + urllib.parse.quote(prefix, safe="") + token)[1])
        names += [key.text for key in page.findall("{*}Contents/{*}Key")]
        following = page.findtext("{*}NextContinuationToken")
        token = "&continuation-token=" + urllib.parse.quote(following, safe="") if following else None
    return names


def fetched(name):
    """The bytes of an object; None: it is not there any more."""
    status, body = ask_moto("/kept/" + urllib.parse.quote(name))
    return body if status == 200 else None


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
        if path == "/-/mirror":
            return self.mirror(fields["prefix"], fields["into"], "alone" in fields)
        with lock:
            body = "requests {requests} faults {faults}\n".format(**counts).encode()
        self.reply(200, body)

    def mirror(self, prefix, into, alone):
        if alone and not (self.server.await_alone() and idle()):
            return self.reply(503, b"clients are still connected\n")
        names = listed(prefix)
        folders = {}
        for name in names:
            folders.setdefault(os.path.dirname(name), set()).add(name)
        shutil.rmtree(into, ignore_errors=True)
        os.mkdir(into)
        # COMPLETE comes last, and only beside all else that was listed: another file may be removed meanwhile
        for name in sorted(names, key=lambda name: name.endswith("/COMPLETE")):
            content = fetched(name)
            folder = os.path.join(into, os.path.dirname(name)[len(prefix):])
            if name.endswith("/COMPLETE") and (content is None or not folders[os.path.dirname(name)] <= {name}):
                continue
            folders[os.path.dirname(name)].discard(name if content is not None else None)
            if content is not None:
                os.makedirs(folder, exist_ok=True)
                with open(os.path.join(into, name[len(prefix):]), "wb") as file:
                    file.write(content)
        return self.reply(200, b"%d objects\n" % len(names))

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
        if kind in UNKNOWN and "If-None-Match" in self.headers:
            return self.error(*UNKNOWN[kind])
        if kind == "forget" and self.command == "PUT" and self.path.endswith("/COMPLETE"):
            return self.reply(200, b"", [("ETag", '"0"')])  # a server that loses what it has acknowledged
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

    def __init__(self, *args):
        self.connected, self.changed = 0, threading.Condition()
        super().__init__(*args)

    def count(self, more):
        with self.changed:
            self.connected += more
            self.changed.notify_all()

    def process_request(self, request, client_address):  # in the order in which clients have connected
        self.count(1)
        super().process_request(request, client_address)

    def process_request_thread(self, request, client_address):
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.count(-1)

    def await_alone(self):
        """Waits until the client that asks is the only one that is connected."""
        with self.changed:
            return self.changed.wait_for(lambda: self.connected == 1, PATIENCE)

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class Counted:
    """The application of moto; IDLE is answered when no other request is carried out."""

    def __init__(self, application):
        self.application, self.busy, self.changed = application, 0, threading.Condition()

    def __call__(self, environ, start_response):
        if environ["PATH_INFO"] == IDLE:
            with self.changed:
                quiet = self.changed.wait_for(lambda: not self.busy, PATIENCE)
            start_response("200 OK" if quiet else "503 Busy", [("Content-Length", "0")])
            return [b""]
        with self.changed:
            self.busy += 1
        try:
            return list(self.application(environ, start_response))
        finally:
            with self.changed:
                self.busy -= 1
                self.changed.notify_all()


def make_backend():
    os.environ.setdefault("AWS_ACCESS_KEY_ID", "x")
    os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "x")
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server, WSGIRequestHandler
    import logging
    logging.getLogger("werkzeug").disabled = True
    WSGIRequestHandler.protocol_version = "HTTP/1.1"
    return make_server("127.0.0.1", 0, Counted(DomainDispatcherApplication(create_backend_app)), threaded=True)


def be_ready(path, address, port):
    with open(path, "w") as file:
        file.write(f"http://{address}:{port}\n")


def serve_front(address, port, path):
    server = Server((address, port), Front)
    be_ready(path, address, server.server_port)
    server.serve_forever()


def main():
    global backend
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        del os.environ[name]
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    if sys.argv[1] == "front":
        backend = urllib.parse.urlsplit(sys.argv[4]).port
        if not idle():  # what a front before this one has begun is over
            sys.exit("moto is busy")
        address, _, port = sys.argv[2].rpartition(":")
        return serve_front(address, int(port), sys.argv[3])
    moto = make_backend()
    backend = moto.server_port
    if sys.argv[1] == "backend":
        be_ready(sys.argv[2], "127.0.0.1", backend)
        return moto.serve_forever()
    threading.Thread(target=moto.serve_forever, daemon=True).start()
    return serve_front(sys.argv[1], 0, sys.argv[2])


main()
