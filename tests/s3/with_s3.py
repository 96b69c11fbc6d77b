#!/usr/bin/env python3
"""Runs a program beside a server of S3 for tests, whose address and keys are in its environment.

    with_s3.py ADDRESS PROGRAM WORDS...      77: there is no moto; the reason is printed
"""
import os
import subprocess
import sys
import tempfile
import urllib.request

here = os.path.dirname(os.path.abspath(__file__))
moto = subprocess.run([os.path.join(here, "../../scripts/moto")], stdout=subprocess.PIPE, text=True)
if moto.returncode:
    print("skipped: moto is not there; ./dev setup s3 installs it")
    sys.exit(77)
with tempfile.TemporaryDirectory() as folder:
    ready = os.path.join(folder, "ready")  # a pipe: its reader waits until the server has written
    os.mkfifo(ready)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    server = subprocess.Popen([moto.stdout.strip(), os.path.join(here, "s3_server.py"), sys.argv[1], ready],
                              env=environment, stdin=subprocess.DEVNULL)
    try:
        with open(ready) as file:
            environment["AWS_ENDPOINT_URL"] = file.read().strip()
        way = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        way.open(environment["AWS_ENDPOINT_URL"] + "/-/bucket?name=kept").read()
        environment.update(AWS_ACCESS_KEY_ID="AKTEST", AWS_SECRET_ACCESS_KEY="sEcret/+123",
                           AWS_EC2_METADATA_DISABLED="true")
        code = subprocess.run(sys.argv[2:], env=environment).returncode
    finally:
        server.kill()
        server.wait()
sys.exit(code)
