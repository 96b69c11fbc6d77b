"""A web server for --on-event-url: records each event that it takes.

    python3 event_server.py ADDRESS FILE     FILE gets the URL when the server is ready

With the variable EVENT_CERT, the name of a file with a certificate and its key, the server speaks HTTPS.

In the current folder the body of each request that is answered with 200 is appended to `told`, and a line about each request to
`asked`: the number of its connection, its path, its headers as JSON. While there is a file `fails`, requests are
answered with the status in it. A request that finds a file `hangs` is noted in `hanging`, and is answered when that file is gone.
"""
import http.server
import json
import os
import ssl
import sys
import threading
import time

connections = iter(range(1, 1 << 30))
lock = threading.Lock()


def append(name, text):
    with open(name, "a") as file:
        file.write(text)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        super().setup()
        self.connection_number = next(connections)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        with lock:
            append("asked", f"{self.connection_number}\t{self.path}\t{json.dumps(dict(self.headers))}\n")
        if os.path.exists("hangs"):
            append("hanging", body)
            while os.path.exists("hangs"):
                time.sleep(0.02)
        status = 200
        if os.path.exists("fails"):
            with open("fails") as file:
                status = int(file.read())
        with lock:
            append("told" if status == 200 else "refused", body)
        answer = b'{"ok": true}\n'
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *words):
        pass


server = http.server.ThreadingHTTPServer((sys.argv[1], 0), Handler)
if "EVENT_CERT" in os.environ:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.environ["EVENT_CERT"])
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
with open(sys.argv[2] + ".new", "w") as file:
    file.write(f"{sys.argv[1]}:{server.server_address[1]}\n")
os.rename(sys.argv[2] + ".new", sys.argv[2])
server.serve_forever()
