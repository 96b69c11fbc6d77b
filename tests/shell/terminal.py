#!/usr/bin/env python3
"""Runs a command on a terminal of its own, as a person does: terminal.py SHOWN KEYS COMMAND...

What the command prints is appended to the file SHOWN. Each word of the FIFO KEYS is a key: a letter, "enter", "escape",
"down", "ctrl-c" or "ctrl-z"; "size=COLUMNSxLINES" gives the terminal a size, and "close" closes it. Ends with the exit
code of the command, 128 + the signal that ended it."""

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios

KEYS = {"enter": b"\r", "escape": b"\x1b", "down": b"\x1b[B", "ctrl-c": b"\x03", "ctrl-z": b"\x1a"}


def main():
    shown = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    child, terminal = pty.fork()
    if child == 0:
        # A shell without job control ignores Ctrl-C in what it starts in the background; a person's shell does not.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)
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
                if key == "close":
                    os.close(terminal)
                    terminal = -1
                    break
                if key.startswith("size="):
                    columns, lines = map(int, key[5:].split("x"))
                    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
                else:
                    os.write(terminal, KEYS.get(key, key.encode()))
    status = os.waitpid(child, 0)[1]
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


sys.exit(main())
