"""The part that all recipes of this folder share: options, a tool with a time limit, errors, and the list of hosts.

Each recipe asks one service which machines run, and prints these for --host-discovery-script. The invariant: a recipe
that has no whole answer prints nothing on standard output and one line on standard error, and ends with 1. The driver
then keeps the last list. An answer without machines is a comment alone: the driver takes all hosts away.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from typing import Any, Callable, Optional

QUOTED_MAX = 300  # characters of a tool's own error text
HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*|[0-9A-Fa-f:.]+(%[A-Za-z0-9_.-]+)?")
Host = tuple[str, Optional[int]]  # a name or an address, and its slots; None: as --slots says


class RecipeError(Exception):
    """A recipe has no answer. The text names the culprit first and the remedy last."""


def option(
    parser: argparse.ArgumentParser, name: str, text: str, preset: str = "", choices: Sequence[str] = ()
) -> None:
    """Add --NAME, whose value is also read from the variable DISCOVER_NAME: the driver gives a script no words."""
    variable = "DISCOVER_" + name.upper().replace("-", "_")
    parser.add_argument(
        "--" + name,
        default=os.environ.get(variable) or preset,
        metavar="|".join(choices) or name.upper(),
        choices=choices or None,
        help=f"{text} (variable {variable}; default: {preset or 'none'})",
    )


def options_of(doc: str) -> argparse.ArgumentParser:
    """Make a parser whose help is the recipe's comment, with the options that all recipes have."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    option(parser, "slots", "slots of each host; without it, --slots-per-host of the driver counts")
    option(parser, "timeout", "seconds for all that the recipe asks", "20")
    return parser


def need(options: argparse.Namespace, *names: str) -> None:
    """Refuse a recipe that was called without one of these options."""
    for name in names:
        if not getattr(options, name):
            raise RecipeError(f"--{name} is not given; give it, or set DISCOVER_{name.upper()}")


class Tool:
    """A command-line tool of a service. All calls share one time limit, and answer in JSON."""

    def __init__(
        self, name: str, install: str, remedies: Sequence[tuple[str, str]], options: argparse.Namespace
    ) -> None:
        """`remedies`: a part of the tool's error text, and what the operator can do then."""
        path = shutil.which(name)
        if not path:
            raise RecipeError(f"{name}: there is no such program in PATH; {install}")
        self.name, self.path, self.remedies = name, path, remedies
        self.seconds = float(options.timeout)
        self.until = time.monotonic() + self.seconds

    def ask(self, words: Sequence[str], text: str = "") -> Any:
        """Run the tool with these words, and with `text` on its standard input, and return the JSON that it prints.

        Files take the output, and no pipes: a child that the tool has left behind cannot hold up the recipe.
        """
        with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            source.write(text.encode())
            source.seek(0)
            code = self._run(words, source, out, err)
            out.seek(0)
            err.seek(0)
            if code != 0:
                raise RecipeError(self._blame(err.read().decode("utf-8", "replace"), words, code))
            try:
                return json.loads(out.read().decode())
            except ValueError as error:
                raise RecipeError(f"{self.name}: the answer is not JSON: {error}; {self._by_hand(words)}") from None

    def _run(self, words: Sequence[str], source: Any, out: Any, err: Any) -> Optional[int]:
        """Return the exit code; None: the tool was killed after the time limit.

        The driver runs a recipe as the leader of a process group, and kills that group when the recipe has ended, so
        the tool stays in it. A recipe that was started by hand gives the tool a session of its own, and kills that.
        """
        apart = os.getpgrp() != os.getpid()
        tool = subprocess.Popen([self.path, *words], stdin=source, stdout=out, stderr=err, start_new_session=apart)
        try:
            return tool.wait(max(0.0, self.until - time.monotonic()))
        except subprocess.TimeoutExpired:
            return None
        finally:
            if tool.poll() is None:
                if apart:
                    os.killpg(tool.pid, signal.SIGKILL)
                else:
                    tool.kill()
                tool.wait()

    def _by_hand(self, words: Sequence[str]) -> str:
        return "run this by hand: " + " ".join(shlex.quote(word) for word in [self.name, *words])[:QUOTED_MAX]

    def _blame(self, said: str, words: Sequence[str], code: Optional[int]) -> str:
        """Return the error text for a tool that has failed: its most useful line, and the remedy if one is known."""
        lines = [line.strip() for line in said.splitlines() if line.strip()] or ["it printed no reason"]
        telling = [line for line in lines if "error" in line.lower()] or lines[-1:]
        remedy = self._by_hand(words)
        for part, known in self.remedies:
            named = [line for line in lines if part in line]
            if named:
                telling, remedy = named, known
                break
        line = re.sub(r"[^ -~]", "?", telling[0])[:QUOTED_MAX].rstrip(".; ")
        if code is None:
            how = f"no answer within {self.seconds:g}s (--timeout)"
        else:
            how = f"exit code {code}" if code > 0 else f"signal {-code}"
        return f"{self.name}: {line}; {how}; {remedy}"


def _list(hosts: Iterable[Host], slots: str, program: str) -> str:
    """Return the text for the driver. The list is checked here, so that no name can become two lines."""
    lines = {}
    for name, own in hosts:
        if not isinstance(name, str) or not HOST.fullmatch(name):
            raise RecipeError(f"{name!r} cannot be the name or address of a host; ask for another one with --address")
        number = str(own) if own is not None else slots
        lines[name] = (f"[{name}]" if ":" in name else name) + (f":{number}" if number else "")
    return "".join(line + "\n" for line in lines.values()) or f"# {program}: no machine runs\n"


def main(
    doc: Optional[str],
    ask: Callable[[argparse.Namespace], Iterable[Host]],
    more: Callable[[argparse.ArgumentParser], None],
) -> int:
    """Run a recipe: `more` adds its options, `ask` returns the hosts. The result is the exit code."""
    parser = options_of(doc or "")
    more(parser)
    options = parser.parse_args()
    try:
        if not re.fullmatch(r"|0|[1-9]\d{0,3}", options.slots):
            raise RecipeError(f"--slots: {options.slots!r} is no number from 0 to 1024; give a number")
        if not re.fullmatch(r"[1-9]\d{0,3}", options.timeout):
            raise RecipeError(f"--timeout: {options.timeout!r} is no number of seconds; give one from 1 to 9999")
        sys.stdout.write(_list(ask(options), options.slots, parser.prog))
        sys.stdout.flush()
    except RecipeError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{parser.prog}: {error}; check this machine", file=sys.stderr)
        return 1
    except (LookupError, TypeError, AttributeError) as error:
        kind = type(error).__name__
        print(f"{parser.prog}: the answer lacks what it should have ({kind}: {error}); report this", file=sys.stderr)
        return 1
    return 0
