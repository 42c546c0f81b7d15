"""Where a shell gets its commands: a file, the text after `-c`, or standard input.

Source: bash(1), ssh(1), sbatch(1).
"""

from __future__ import annotations

import posixpath
import re
from typing import NamedTuple, Sequence, Union

from envtune.messages import Text
from envtune.shell.expansion import Value

SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh"))
_WITH_VALUE = re.compile(r"[-+][a-zA-Z]*[oO]|--(?:rcfile|init-file)")  # `-euo pipefail`
_SSH_WITH_VALUE = re.compile(
    r"-[46AaCfGgKkMNnqsTtVvXxYy]*[BbcDEeFIiJLlmOopQRSWw]"
)  # as the last letter: a word follows
_SCRIPTS = (".sh", ".bash", ".sbatch", ".slurm")


class Program(NamedTuple):
    """What a shell executes: a file or, with `text`, a text, then arguments; with `stdin` only arguments."""

    words: Sequence[Value]
    text: bool = False
    stdin: bool = False


def program_of_shell(arguments: Sequence[Value]) -> Union[Program, Text]:
    """Return what `bash` with these arguments executes, or why that is unknown; no words: standard input."""
    at, stdin = 0, False
    while at < len(arguments):
        word = arguments[at]
        if isinstance(word, Text):
            return word
        if not word.startswith(("-", "+")):
            break
        at += 1
        if word in ("-", "--"):
            break
        if word.endswith("c") and not word.startswith("--"):
            return Program(arguments[at:], text=True)
        stdin = stdin or (word[1:].isalpha() and "s" in word)
        at += _WITH_VALUE.fullmatch(word) is not None
    return Program(arguments[at:], stdin=stdin)


def reads_input(arguments: Sequence[Value]) -> bool:
    """Return whether `bash` with these arguments reads its commands from standard input."""
    found = program_of_shell(arguments)
    return not isinstance(found, Text) and not found.text and (found.stdin or not found.words)


def reads_input_outside(name: str, arguments: Sequence[Value]) -> bool:
    """Return whether ssh, su, docker and the like start a shell that reads its commands from standard input."""
    words = [word if isinstance(word, str) else "" for word in arguments]
    if name == "ssh":
        words = " ".join(_after_host(words)).split()
        if not words:
            return True
        return posixpath.basename(words[0]) in SHELLS and reads_input(words[1:])
    if name == "su":
        return not any(re.fullmatch(r"-[a-z]*c|--command(?:=.*)?", word) for word in words)
    for at, word in enumerate(words):
        if posixpath.basename(word) in SHELLS:
            return reads_input(words[at + 1 :])
    return False


def _after_host(words: Sequence[str]) -> Sequence[str]:
    """Return the command of ssh: the words after the host."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if _SSH_WITH_VALUE.fullmatch(words[at]) else 1
    return words[at + 1 :]


def names_script(arguments: Sequence[Value]) -> bool:
    """Return whether sbatch is given a script or, with --wrap, a command."""
    words = [word for word in arguments if isinstance(word, str)]
    return any(word.endswith(_SCRIPTS) or word.startswith("--wrap") for word in words)
