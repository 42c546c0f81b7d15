"""Command lines shown to people for pasting: quoted for the shell, or withheld if they contain an unsafe name.

Names come from hosts, including recorded ones, and were chosen by whoever created a chain, a directory or a file.
Quoting protects against the shell, but not against the program that receives them (nft joins its arguments and parses
`;` itself), nor does it protect the reader, who trusts what looks like a path.
"""

from __future__ import annotations

import os
import shutil
import sys
from shlex import quote
from typing import Iterable, Union

from envtune.messages import Joined, Literal, Message, Text
from envtune.records import expression
from envtune.trust.characters import is_visible

# Letters, digits and blanks of any language, and characters without a meaning in any shell; not an option.
_PLAIN = expression(r"[\w@%+=:,./][\w@%+=:,./ -]*")
_OWN = expression(r"(sudo )?envtune(?= |$)")
# Where sudo looks on every distribution; the secure_path of openEuler and RHEL leaves /usr/local out.
_PATH_OF_SUDO = "/usr/sbin:/usr/bin:/sbin:/bin"
_BEGINNING = 1024  # bytes of a program: no archive goes that far without a zero byte
is_program = False  # envtune was started as a program, as sys.argv says, and not called within another one


_COMMENTS = {"on the physical host": Message("on the physical host")}  # behind the lines of the catalog


def commented(line: str) -> Text:
    """Return a line to type; a comment of the catalog behind it is in both languages."""
    words, _, comment = line.partition("  # ")
    return Joined((words, _COMMENTS[comment]), "  # ") if comment in _COMMENTS else Literal(line)


class WithheldError(Exception):
    """A name is not safe on a command line; `reason` names it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.reason: Text = Message("write the command by hand: {name} is not safe to paste", name=name)


def quoted(name: str) -> str:
    """Return a name from a host as a shell word. Raises WithheldError."""
    if not is_visible(name) or not _PLAIN.fullmatch(name):
        raise WithheldError(name)
    return quote(name)


def require_word(name: str) -> str:
    """Return a name that needs no quoting, for programs with their own syntax. Raises WithheldError."""
    if quoted(name) != name:
        raise WithheldError(name)
    return name


def line(words: Iterable[str]) -> str:
    """Return our words and the user's arguments as a command line. Raises WithheldError for invisible characters."""
    words = list(words)
    for word in words:
        if not is_visible(word):
            raise WithheldError(word)
    return " ".join(map(quote, words))


def with_catalogs(command: str, catalogs: Iterable[str]) -> str:
    """Return an envtune command with the directories of --catalog: without them it would not find their entries."""
    return with_words(command, (word for directory in catalogs for word in ("--catalog", directory)))


def with_words(command: str, words: Iterable[str]) -> str:
    """Return an envtune command with more words of a command line."""
    return " ".join([command, *map(quote, words)])


def checked(command: Union[str, Text]) -> Union[str, Text]:
    """Return the command, or the reason why it is not shown."""
    if isinstance(command, Text) or is_visible(command):
        return command
    return WithheldError(command).reason


def for_this_host(command: str, same_user: bool = False) -> str:
    """Return a line that starts envtune, by its full path if its name alone would not start this one.

    That applies to a virtual environment and the single file, and for sudo also below /usr/local. `same_user` is for
    lines about the journal: a user who used sudo needs it again. Lines for another host keep the plain name. Of several
    commands the last one is envtune's.
    """
    first, joint, own = command.rpartition(" && ")
    found = _OWN.match(own) if is_program and "envtune" in own else None
    if found is None:
        return command
    sudo = found[1] or ("sudo " if same_user and os.geteuid() == 0 and "SUDO_UID" in os.environ else "")
    named = shutil.which("envtune", path=_PATH_OF_SUDO if sudo else None)
    if named is not None and os.path.realpath(named) == os.path.realpath(sys.argv[0]):
        return f"{first}{joint}{sudo}envtune{own[found.end() :]}"
    return f"{first}{joint}{sudo}{' '.join(map(quote, own_program()))}{own[found.end() :]}"


def own_program() -> list[str]:
    """Return the absolute path of the installed script or single file, else the module in isolated mode (-I)."""
    program = os.path.abspath(sys.argv[0])
    if not program.endswith("__main__.py") and os.path.isfile(program) and _is_archive(program):
        return [sys.executable, "-I", program]
    if os.path.basename(program) == "envtune" and os.access(program, os.X_OK) and os.path.isfile(program):
        return [program]
    return [sys.executable, "-I", "-m", "envtune"]


def _is_archive(path: str) -> bool:
    """Return whether the program is the one file: a line for the kernel and an archive, and no script of text."""
    with open(path, "rb") as file:
        is_text = b"\0" not in file.read(_BEGINNING)
    if is_text:
        return False
    import zipfile

    return zipfile.is_zipfile(path)
