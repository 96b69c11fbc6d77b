"""Chromium without a window, through a pair of pipes (--remote-debugging-pipe): no port, and nothing but Python.

    with browser.Page(1600, 1300) as page:
        page.open("http://127.0.0.1:8000/")
        page.await_text(["rank 0"])
        page.take_picture("page.png")
"""
import base64
import json
import os
import select
import subprocess
import sys
import tempfile
import time

WAIT_S = 100

# The page is painted, piece by piece, when it has nothing else to do.
PAINTED = "new Promise(f => { let n = 90; const g = () => --n ? requestAnimationFrame(g) : f(); g(); })"


def fail(why):
    sys.exit(f"{os.path.basename(sys.argv[0])}: {why}")


class Page:
    """A page of a browser of its own."""

    def __init__(self, width, height):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs_in, self.to = os.pipe()
        self.come, theirs_out = os.pipe()
        # bash gives the pipes the numbers that Chromium expects
        command = ["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "bash", "chromium", "--headless=new",
                   "--no-sandbox", "--disable-dev-shm-usage", "--use-gl=angle", "--use-angle=swiftshader",
                   "--enable-unsafe-swiftshader", f"--user-data-dir={self.profile.name}",
                   f"--window-size={width},{height}", "--remote-debugging-pipe", "about:blank"]
        self.process = subprocess.Popen(command, pass_fds=(theirs_in, theirs_out), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.number, self.session, self.rest = 0, None, b""

    def __enter__(self):
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        os.close(self.to)
        os.close(self.come)
        self.profile.cleanup()

    def _next(self):
        """A message: JSON, ended by a NUL."""
        until = time.time() + WAIT_S
        while b"\0" not in self.rest:
            if not select.select([self.come], [], [], max(0, until - time.time()))[0]:
                fail(f"chromium is silent for {WAIT_S} s")
            more = os.read(self.come, 1 << 20)
            if not more:
                fail("chromium has ended")
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def ask(self, method, **params):
        self.number += 1
        question = {"id": self.number, "method": method, "params": params}
        if self.session:
            question["sessionId"] = self.session
        try:
            os.write(self.to, json.dumps(question).encode() + b"\0")
        except BrokenPipeError:
            fail("chromium does not start")
        while True:
            answer = self._next()
            if answer.get("id") == self.number:
                if "error" in answer:
                    fail(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, url):
        self.ask("Page.navigate", url=url)

    def value(self, script):
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            fail(f"{script}: {answer['exceptionDetails'].get('exception', answer)}")
        return answer["result"].get("value")

    def await_text(self, words):
        until = time.time() + WAIT_S
        while True:
            text = self.value("document.body ? document.body.innerText : ''") or ""
            text = text.replace("\n", "")
            missing = [word for word in words if word not in text]
            if not missing:
                return
            if time.time() > until:
                fail(f"the page does not show {missing}: {text[:2000]}")
            time.sleep(0.2)

    def take_picture(self, png, **params):
        self.value(PAINTED)
        picture = self.ask("Page.captureScreenshot", format="png", **params)["data"]
        with open(png, "wb") as file:
            file.write(base64.b64decode(picture))
