"""Reads comments, texts of programs and docs as sentences; check-words says which of them are not plain.

Called by check-words with the names of the files on standard input; prints "file:line: finding" for each. A
sentence that begins with Who, What or their like has no noun as its subject. A word of scripts/words.txt is a
private one, where the field or the glossary has a usual one. Quoted words (`x`, "x") in docs are not judged.
"""
import re
import sys

TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
SUBJECT = re.compile(r"(?:^|(?<=[.!?;:]) )(Who|Whoever|Whom|Whose|What|Whatever)\b[^.?!]*(\?)?")
SKIPPED = ("/corpus/", "tests/stories/golden/", "scripts/words.", "scripts/check-selftest", "docs/glossary.md", "CONTRIBUTING.md",
           "CHANGELOG.md", "LICENSE")


def rows():
    with open("scripts/words.txt", encoding="utf-8") as table:
        for line in table:
            if line.strip() and not line.startswith("#"):
                pattern, instead = re.split(r"\s{2,}", line.strip(), maxsplit=1)
                yield re.compile(rf"\b{pattern}\b", re.I), instead


def code_texts(text):
    """(line, text) of each comment and string; a comment of several lines is one text."""
    for match in TOKEN.finditer(text):
        piece = match.group(0)
        if piece[0] == "'" or (piece[0] == '"' and " " not in piece):
            continue
        yield text.count("\n", 0, match.start()) + 1, re.sub(r"^[/*\s\"]+|[/*\s\"]+$", "", piece)


def hash_texts(text):
    """(line, text) of runs of lines that are comments in scripts."""
    first, run = 0, []
    for number, line in enumerate(text.split("\n") + [""], 1):
        match = re.match(r"\s*#(?!!)\s?(.*)", line)
        if match:
            first = first or number
            run.append(match.group(1))
        elif run:
            yield first, "\n".join(run)
            first, run = 0, []


def doc_texts(text):
    """(line, text) of each paragraph, table row or list item of a page; indented and fenced code is left out."""
    text = re.sub(r"(?ms)^```.*?^```", lambda m: "\n" * m.group(0).count("\n"), text)
    number = 1
    for block in re.split(r"(\n\s*\n)", text):
        if block.strip() and not block.startswith("    "):
            offset = 0
            for item in re.split(r"(?m)^(?=[|\-*] |\|)", block):
                if item.strip():
                    yield number + offset, re.sub(r"`[^`]*`|\"[^\"]*\"", "x", item)
                offset += item.count("\n")
        number += block.count("\n")


def texts(name, text):
    if name.endswith((".c", ".h", ".cc", ".cu", ".cuh", ".proto")):
        return code_texts(text)
    if name.endswith(".md"):
        return doc_texts(text)
    if name.endswith((".sh", ".txt", ".cmake", ".awk", ".py")) or name == "dev" or name.startswith((".ci/", "scripts/")):
        return hash_texts(text)
    return ()


def judge(name, number, text, table):
    def place(at):
        return f"{name}:{number + text.count(chr(10), 0, at)}"

    flat = re.sub(r"\n[ \t]*\*?[ \t]*", lambda m: " " * len(m.group(0)), text)
    flat = re.sub(r"(?<=[.!?;:])  +", lambda m: " " * (len(m.group(0)) - 1) + " ", flat)
    squeezed, origin = [], []
    for index, letter in enumerate(flat):
        if letter != " " or not squeezed or squeezed[-1] != " ":
            squeezed.append(letter)
            origin.append(index)
    sentence = "".join(squeezed)
    for match in SUBJECT.finditer(sentence):
        if not match.group(2) and not sentence[match.end():].startswith("?"):
            yield f'{place(origin[match.start(1)])}: "{match.group(0).strip()[:50]}": a sentence has a noun as its subject, ' \
                  f'as in "A worker that ..."'
    for pattern, instead in table:
        for match in pattern.finditer(sentence):
            yield f'{place(origin[match.start()])}: "{match.group(0)}": write {instead}'


def main():
    table = list(rows())
    for name in sys.stdin.read().split("\n"):
        if not name or any(part in name for part in SKIPPED):
            continue
        try:
            with open(name, encoding="utf-8") as file:
                text = file.read()
        except UnicodeDecodeError:
            continue
        for number, piece in texts(name, text):
            for finding in judge(name, number, piece, table):
                print(finding)


if __name__ == "__main__":
    main()
