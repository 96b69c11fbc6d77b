"""Follows the page of --page in Chromium, without ever loading it anew.

    page_live.py follow URL STEPS ANSWERS [PICTURE]
        does one step for each line of STEPS, and writes a line to ANSWERS when the page shows it: "trains", "killed",
        "gone", "back", "followed"; "end" is the last one. PICTURE is taken when the page shows the killed worker.
    page_live.py files LIVING ORPHANED ENDED [PICTURES]
        shows the files that the verb "page" has written of one job that has lost a worker, then its driver, and was stopped.
    page_live.py control URL [PICTURES]
        drains a host of a job with --page-control, and stops the job.
    page_live.py made PAGE [PICTURES]
        shows the page what this program makes up: a job with texts that are HTML, and one of 1000 workers under churn.
"""
import http.server
import json
import os
import sys
import threading
import time

import browser
import page_look

HOSTILE = "</script><img src=x onerror='window.pwned=1'><script>window.pwned=1</script>\u202e\x1b[31m&amp;"


def follow(url, steps, answers, picture=None):
    with browser.Page(1200, 1000) as page, open(answers, "a", buffering=1, encoding="utf-8") as said:
        page.open(url)
        for step in open(steps, encoding="utf-8"):
            step = step.strip()
            if step == "end":
                break
            if step == "trains":
                page.await_text(["live ·", "4 workers train.", "waiting for workers"])
                if page.value("document.querySelectorAll('.pause.recovery').length"):
                    browser.fail("a pause is drawn before the kill")
                page.value("window.loaded = 'once'")
            elif step == "killed":
                page.await_text(["3 workers train, 1 fewer than it began with.", "4 → 3", "killed by signal 9"])
                for what, script in (
                        ("a drawn pause", "document.querySelectorAll('svg .pause.recovery').length === 1"),
                        ("a pause with a width", "document.querySelector('.pause.recovery').getBoundingClientRect().width >= 3"),
                        ("the change is open", "document.querySelector('[aria-expanded=true]').textContent.includes('recovery')"),
                        ("its phases", "document.querySelector('.detail').textContent.includes('rebuild')"),
                        ("the worker waited for", "document.querySelector('.detail').textContent.includes('has recovered')"),
                        ("why there are fewer", "document.getElementById('fewer').textContent.startsWith('Why not 4: 127.0.0.2: slot ')"),
                        ("the reason alone", "document.getElementById('waits').textContent === ''"),
                        ("what was lost", "document.getElementById('facts').textContent.includes('of workers’ time lost')"),
                        ("its reason", "document.querySelector('[aria-expanded=true] .because').textContent.includes('killed by signal 9')"),
                        ("the moment that offsets count from", "document.querySelector('.detail').textContent.includes('0 is the moment')"),
                        ("the failure of the host", "document.getElementById('hosts').textContent.includes('1 failure, last')"),
                        ("how to drain", "document.getElementById('hosts').textContent.includes('hvd-elastic drain HOST ')"),
                        ("where the events are", "document.getElementById('log').textContent.includes('/events.log')"),
                        ("the host that failed", "document.getElementById('facts').textContent.includes('on 127.0.0.2')"),
                        ("the missing checkpoints", "document.getElementById('facts').textContent.includes('there is no --checkpoint-dir')"),
                        ("the failures by slot", "document.getElementById('blacklist').textContent.includes('1 failure')")):
                    if not page.value(script):
                        browser.fail(f"the page lacks {what}")
                page_look.look(page, "a job with a killed worker")
                page.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
                page.ask("Emulation.setDeviceMetricsOverride", width=1000, height=900, deviceScaleFactor=1, mobile=False)
                if picture:
                    page.take_picture(picture)
                page.value("document.querySelectorAll('#severity button')[0].click()")
                page.await_text(["None of this severity."])
                page.value("document.querySelectorAll('#severity button')[1].click()")
                if page.value("document.querySelectorAll('#events li.info').length"):
                    browser.fail("the filter lets info through")
            elif step == "gone":
                page.await_text(["no word from the driver"])
            elif step == "back":
                page.await_text(["live ·", "driver2", "4 → 3"])
            elif step == "followed":
                page.await_text(["3 → 2"])
                because = page.value("document.querySelector('#changes .row .because').textContent")
                if "killed by signal 9" not in because or not because.endswith("; a new driver took over"):
                    browser.fail(f"the reason for the first change after the takeover is '{because}'")
            if page.value("window.loaded") != "once":
                browser.fail(f"{step}: the page was loaded anew")
            said.write(step + "\n")


def message(text, hosts, workers, changes):
    """A message of the driver. Every text of the job in it is `text`, with a number."""
    each = workers // hosts
    states = ["member", "booting", "doomed", "ready"]
    now = time.time()
    stamp = lambda at: time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + ".000Z"
    part = {"worker_s": 1000.0, "s": 10.0}
    uses = ["training", "start", "recovery", "rebuild", "switch", "waiting", "lost_steps", "no_driver", "ending"]
    causes = ["switch", "recovery"]
    return {
        "status": {
            "job": f"{text} 1", "state": "running", "waiting_for": f"{text} 2", "round": changes + 1, "next": 0,
            "size": workers, "commit": "3.1", "floor": "3.0", "newest": "3.9", "newest_age_s": 0.4,
            "reported": [
                {"name": f"{text} 11", "value": 0.0123456, "round": 3, "commit": "3.9", "age_s": 0.5},
                {"name": "grad/norm", "value": "NaN", "round": 3, "commit": None, "age_s": 700.0},
                {"name": "throughput", "value": 15234.5, "round": 3, "commit": "3.9", "age_s": 0.5}],
            "commits_per_s": 2.5, "lagging": [{"worker": f"{text} {where}", "silent": True, "heard_s": 9.0} for where in ("9", "4 0:0")], "resets": changes, "enough": True, "short_for_s": None,
            "np": workers, "min_np": 2, "max_np": 4294967295, "workers": {}, "goodput": dict({use: part for use in uses}, part=0.91),
            "hosts": {"listed": hosts, "used": hosts, "draining": 0, "agents": hosts}, "failures": [{"host": f"{text} 3", "count": 7}],
            "driver": {"pid": 1, "term": 1, "for_s": 7200.0, "silent_s": None, "state_dir": "/s"}},
        "hosts": {"job": "j", "hosts": [{
            "name": f"{text} 4 {i}", "slots": each, "used": each, "listed": True, "draining": i == 1, "agent": "there",
            "heard_s": 0.1 if i else 77.0, "why": "" if i % 5 else f"{text} 5", "workers": [{
                "slot": k, "incarnation": 1, "rank": i * each + k, "state": states[(k // 3) % 4], "trains": k < 3, "for_s": 1.0}
                for k in range(each)]} for i in range(hosts)]},
        "changes": {"job": "j", "changes": [{
            "round": i + 1, "cause": causes[i * 7 % 5 % 2] if i else "first", "from": workers - i * 37 % (workers // 2 + 1) if i else 0,
            "to": workers - (i + 1) * 37 % (workers // 2 + 1), "ago_s": 110.0 * (changes - i) - 100, "pause_us": 10 ** (4 + i % 4),
            "agree_us": 3000, "rebuild_us": 10 ** (3 + i % 4), "state_us": 1000, "first_step_us": 500} for i in range(changes)]},
        "blacklist": {"job": "j", "blacklist": [{
            "host": f"{text} 6", "slot": None, "failures": 3, "usable": False, "left_s": None, "reason": f"{text} 7"}]},
        "series": [
            {"name": f"{text} 11", "points": [[3600 - 36 * i, 1 / (1 + i) + 0.02 * (i % 5)] for i in range(100)]},
            {"name": "grad/norm", "points": [[3600, 2.0], [3000, 3.0], [1500, "Infinity"], [900, 1.0], [700, "NaN"]]},
            {"name": "throughput", "points": [[4000 - 40 * i, 15000 + 400 * (i % 7), f"3.{40 * i if i < 50 else 2000 + 100 * (i - 50)}"]
                                              for i in range(100)]}],
        "hosts_left_out": 5, "blacklist_left_out": 0, "now": stamp(now),
        "checkpoint": {"commit": "3.1", "age_s": 300.0, "where": f"{text} 10"},
        "events": [{"kind": "worker_failed", "round": changes - 1, "host": f"{text} 4 0", "slot": 1, "incarnation": i, "number": i, "time": stamp(now - 60 + i), "severity": ["error", "warning", "info", "debug"][i % 4],
                    "text": f"{text} 8"} for i in list(range(1, 20)) + list(range(30, 40))]}


def reasons():
    """A message with changes of which each has another reason, and the reasons that the page should show."""
    whole, events, changes, because = message("host", 5, 5, 1), [], [], {}

    def tell(kind, number, text, **facts):
        events.append({"kind": kind, "round": number, "number": len(events) + 1, "time": whole["now"],
                       "severity": "debug" if kind in ("worker_ready", "round_prepared") else "info", "text": text, **facts})

    def change(number, cause, size, to, reason, meanwhile=None):
        if cause == "switch":
            tell("round_prepared", number, "is prepared")
        if meanwhile:
            tell(**meanwhile)
        tell("round_begun", number, "begins", cause=cause)
        tell("round_trains", number, "trains", size=to)
        changes.append({"round": number, "cause": cause, "from": size, "to": to, "ago_s": 100.0 - number, "pause_us": 1,
                        "agree_us": 1, "rebuild_us": 1, "state_us": 1, "first_step_us": 1})
        because[number] = reason

    change(1, "first", 0, 3, "the first round")
    tell("worker_failed", 1, "b:0#2 dies", host="b", slot=0, incarnation=2)
    tell("round_revoked", 1, "is revoked", host="b", slot=0, incarnation=2, cause="b:0#2 dies")
    change(2, "recovery", 3, 2, "b:0#2 dies")
    tell("drain_begun", 2, "d, which has no worker, is drained", host="d")
    tell("cooldown_over", 2, "the cooldown of b:0 is over", host="b", slot=0)
    tell("worker_ready", 2, "b:0#4 is ready", host="b", slot=0, incarnation=4)
    change(3, "switch", 2, 3, "the cooldown of b:0 is over")
    tell("worker_failed", 3, "b:1#5 dies at its start", host="b", slot=1, incarnation=5)
    tell("cooldown_over", 3, "the cooldown of b:1 is over", host="b", slot=1)
    tell("worker_ready", 3, "b:1#6 is ready", host="b", slot=1, incarnation=6)
    change(4, "switch", 3, 4, "the cooldown of b:1 is over")
    tell("hosts_changed", 4, "hosts: +e:1")
    tell("worker_ready", 4, "e:0#7 is ready", host="e", slot=0, incarnation=7)
    change(5, "switch", 4, 5, "hosts: +e:1", {"kind": "drain_begun", "number": 4, "text": "a is drained", "host": "a", "size": 1})
    change(6, "switch", 5, 4, "a is drained")
    tell("worker_failed", 6, "c:1#8 dies at its start", host="c", slot=1, incarnation=8)
    tell("worker_failed", 6, "e:0#7 dies", host="e", slot=0, incarnation=7)
    tell("round_revoked", 6, "is revoked", host="e", slot=0, incarnation=7, cause="e:0#7 dies")
    change(7, "recovery", 4, 3, "e:0#7 dies")
    tell("drain_ended", 7, "the drain of a is over", host="a")
    tell("worker_ready", 7, "a:0#9 is ready", host="a", slot=0, incarnation=9)
    change(8, "switch", 3, 4, "the drain of a is over")
    tell("checkpoint_failed", 8, "no checkpoint could be made")
    whole["status"]["failures"] = [{"host": "a", "count": 1}, {"host": "b", "count": 3}, {"host": "c", "count": 2}]
    whole["changes"]["changes"], whole["events"] = changes, events
    return whole, because


def made(path, pictures=None):
    html = open(path, "rb").read()
    worlds = {"/hostile": message(HOSTILE, 3, 12, 5), "/large": message("node-of-the-cluster", 250, 1000, 64),
              "/still": message("node-of-the-cluster", 3, 12, 5)}
    worlds["/still"]["status"].update(newest_age_s=12.3, commits_per_s=0.5)
    whole, because = reasons()

    class Answer(http.server.BaseHTTPRequestHandler):
        """No policy protects the page here: it must not need one."""

        def do_GET(self):
            world, live = self.path.rsplit("/", 1)
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream" if live else "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(f"data: {json.dumps(worlds.get(world, whole))}\n\n".encode() if live else html)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server, browser.Page(1500, 1000) as page:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for world in worlds:
            page.open(f"http://127.0.0.1:{server.server_port}{world}/")
            texts = [f"{HOSTILE if world == '/hostile' else 'node-of-the-cluster'} {i}" for i in (1, 2, 4, 5, 6, 7, 8, 9, 10, 11)]
            # characters without a picture are not in innerText
            page.await_text([text.replace("\x1b", "") for text in texts[:1]] if world != "/hostile" else ["live", "&amp; 1"])
            shown = page.value("document.body.textContent")
            verdict = page.value("document.getElementById('verdict').textContent")
            if verdict.startswith("Training stands still: no commit for 12") != (world == "/still"):
                browser.fail(f"{world}: the page begins with '{verdict}'")
            if "4 0:0 was not heard for" not in page.value("document.querySelector('#hosts .row').textContent"):
                browser.fail(f"{world}: the host does not say that its worker is silent")
            if "being drained" not in page.value("document.querySelectorAll('#hosts .row')[1].textContent"):
                browser.fail(f"{world}: the workers of a drained host do not leave it")
            missing = [text for text in texts if text not in shown]
            if missing:
                browser.fail(f"{world}: the page lacks {missing}")
            if page.value("document.querySelectorAll('#values svg path').length") != 4 or "NaN" not in shown:
                browser.fail(f"{world}: the speed and the reported values are not drawn")
            speed = page.value("document.querySelector('#values .value').innerText").split("\n")
            if speed[:3] != ["commits/s", "0.5" if world == "/still" else "2.5", "1.0 an hour ago"]:
                browser.fail(f"{world}: the speed is said to be {speed}")
            slower = page.value("document.getElementById('slower').textContent")
            if slower != ("It is 80 % slower than most of the time before: 0.5 commits/s, where it made 2.5." if world == "/still" else ""):
                browser.fail(f"{world}: of the speed the page says '{slower}'")
            tile = page.value("[...document.querySelectorAll('#facts div')].find(e => e.textContent.startsWith('checkpoint')).textContent")
            if not tile.startswith("checkpoint5 min ago commit 1 of round 3, ") or " commits since, in " not in tile:
                browser.fail(f"{world}: of the checkpoint the page says '{tile}'")
            if page.value("document.querySelectorAll('#hosts .row .worker.lags').length") != 1:
                browser.fail(f"{world}: the silent worker is not marked")
            if "10 events are not shown here" not in shown:
                browser.fail(f"{world}: the page hides that events are missing")
            if page.value("window.pwned") or page.value("document.querySelectorAll('img, main script').length"):
                browser.fail(f"{world}: a text has become a part of the page")
            if page.value("[...document.querySelectorAll('.because')].every(e => !e.textContent.includes('8; '))"):
                browser.fail(f"{world}: no change says its reason")
            wrong = page.value("""[...document.querySelectorAll('#changes .row')].slice(1).map(row => row.querySelector('button').click() ||
              [...document.querySelectorAll('.track')].map(t => [t.clientWidth, t.firstChild ? t.firstChild.offsetLeft + t.firstChild.offsetWidth : 0]))
              .flat().filter(([room, used]) => used > room + 3)""")
            if wrong:
                browser.fail(f"{world}: phases are drawn longer than the pause: {wrong[:5]}")
            page_look.look(page, world, pictures and f"{pictures}{world}")
        page.open(f"http://127.0.0.1:{server.server_port}/reasons/")
        page.await_text(["the first round"])
        rows = page.value("[...document.querySelectorAll('#changes .row')].map(e => [e.querySelector('span').textContent, e.querySelector('.because').textContent])")
        sizes = page.value("document.getElementById('sizes').textContent")
        if not sizes.startswith("5 workers for 1.0 s, 4 for 1 min") or not sizes.endswith(", 3 for 3.0 s, 2 for 1.0 s"):
            browser.fail(f"of the sizes of the job the page says '{sizes}'")
        said = {int(number): reason for number, reason in rows}
        if said != because:
            browser.fail(f"the reasons for the changes are {said} in place of {because}")
        tiles = page.value("document.getElementById('facts').textContent")
        for words in ("3 of them on b", "the last attempt failed"):
            if words not in tiles:
                browser.fail(f"the tiles do not say '{words}': {tiles}")
        server.shutdown()


def files(living, orphaned, ended, pictures=None):
    words = {living: ["as it was", "3 workers train, 1 fewer", "driver2"],
             orphaned: ["as it was", "No driver of this job lives", "orphaned"],
             ended: ["ended", "The job has ended with code 143: stopped by hvd-elastic stop.", "3 → 2", "a new driver took over"]}
    with browser.Page(1500, 1000) as page:
        for path, wanted in words.items():
            page.ask("Network.enable")
            page.open("file://" + os.path.realpath(path))
            page.await_text(wanted + ["0 → 4", "4 → 3", "killed by signal 9"])
            drawn = page.value("[...document.querySelectorAll('svg .pause')].map(e => [e.classList[1], e.querySelector('title').textContent])")
            kinds = [kind for kind, _ in drawn]
            if kinds[:2] != ["first", "recovery"] or kinds[2:] != ["recovery"] * (path == ended) or "4 → 3 workers" not in drawn[1][1]:
                browser.fail(f"{path}: the pauses are {drawn}")
            if not page.value("document.querySelector('.detail').textContent.includes('has recovered')"):
                browser.fail(f"{path}: the change does not say what the driver did")
            page.value("document.querySelectorAll('#severity button')[1].click()")
            severities = page.value("[...new Set([...document.querySelectorAll('#events li')].map(e => e.className))]")
            if severities != ["warning"]:
                browser.fail(f"{path}: the filter of warnings shows {severities}")
            page.value("document.querySelectorAll('#severity button')[2].click()")
            page_look.look(page, path, pictures and os.path.join(pictures, os.path.basename(path)[:-5]))


def control(url, pictures=None):
    ask = "document.getElementById('ask').open"
    press = lambda where: f"(() => {{ const b = {where}; if (!b || b.disabled || b.hidden) return false; b.click(); return true; }})()"
    by_id = lambda name: press(f"document.getElementById('{name}')")
    drain = "[...document.querySelectorAll('#hosts .row')].find(e => e.textContent.includes('127.0.0.2')).querySelector('button')"
    with browser.Page(1200, 1000) as page:
        page.open(url)
        page.await_text(["4 workers train.", "drain …", "stop the job …"])
        steps = [("a reader who says no", [drain, "no"], []),
                 ("a drain", [drain, "yes"], ["127.0.0.2 is being drained"]),
                 ("it is closed", ["no"], ["the host is drained until 'hvd-elastic undrain'", "2 workers train", "undrain …"]),
                 ("an end", ["stop", "yes"], ["the job is being stopped"])]
        for name, buttons, wanted in steps:
            for button in buttons:
                if not page.value(by_id(button) if button in ("yes", "no", "stop") else press(button)):
                    browser.fail(f"{name}: no button for {button}")
                if button == drain:
                    page.await_text(["Drain 127.0.0.2? Its 2 workers leave"])
                    page_look.look(page, "a question", pictures and f"{pictures}/question")
                    if page.value("document.getElementById('yes').hidden"):
                        browser.fail(f"{name}: no button to say yes")
            page.await_text(wanted)
            if buttons[-1] == "no" and page.value(ask):
                browser.fail(f"{name}: the question stays")
        if page.value(by_id("yes")):
            browser.fail("one question is sent twice")


{"follow": follow, "files": files, "control": control, "made": made}[sys.argv[1]](*sys.argv[2:])
