#!/usr/bin/env python3
"""Runs a command on a terminal of its own, as a person does: terminal.py SHOWN KEYS COMMAND...

What the command prints is appended to the file SHOWN. Each line of the FIFO KEYS is a key: "ctrl-c", or
"close", which closes the terminal. Ends with the exit code of the command, 128 + the signal that ended it."""

import os
import pty
import select
import sys


def main():
    shown = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    child, terminal = pty.fork()
    if child == 0:
        os.execvp(sys.argv[3], sys.argv[3:])
    keys = os.open(sys.argv[2], os.O_RDWR)
    while terminal >= 0:
        ready = select.select([terminal, keys], [], [])[0]
        if terminal in ready:
            try:
                text = os.read(terminal, 65536)
            except OSError:  # the command has ended, and so have all that had its terminal
                break
            if not text:
                break
            os.write(shown, text)
        if keys in ready:
            for key in os.read(keys, 4096).decode().split():
                if key == "ctrl-c":
                    os.write(terminal, b"\x03")
                elif key == "close":
                    os.close(terminal)
                    terminal = -1
                    break
    status = os.waitpid(child, 0)[1]
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


sys.exit(main())
