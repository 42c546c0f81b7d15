"""Command lines that people are shown to paste: quoted for the shell, or withheld where a name in them is no plain one.

Names come from hosts, recorded ones too, and whoever made a chain, a directory or a file chose them. Quoting keeps a
shell from reading more into them, not the program that gets them (nft joins its arguments and takes `;` as its own) and
not the reader, who trusts what looks like a path.
"""

from __future__ import annotations

import re
from shlex import quote
from typing import Iterable, Union

from envtune.messages import Message, Text
from envtune.trust.characters import is_visible

# Letters, digits and blanks of any language, and what no shell gives a meaning; no option.
_PLAIN = re.compile(r"[\w@%+=:,./][\w@%+=:,./ -]*")


class WithheldError(Exception):
    """A name is not for a command line; `reason` says which."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.reason: Text = Message("no command is shown, because of this name: {name}", name=name)


def quoted(name: str) -> str:
    """Return a name from a host as a word of a shell. Raises WithheldError."""
    if not is_visible(name) or not _PLAIN.fullmatch(name):
        raise WithheldError(name)
    return quote(name)


def require_word(name: str) -> str:
    """Return a name that needs no quoting, for programs with a language of their own. Raises WithheldError."""
    if quoted(name) != name:
        raise WithheldError(name)
    return name


def line(words: Iterable[str]) -> str:
    """Return words of ours and what a user named as a command line. Raises WithheldError for what is not visible."""
    words = list(words)
    for word in words:
        if not is_visible(word):
            raise WithheldError(word)
    return " ".join(map(quote, words))


def checked(command: Union[str, Text]) -> Union[str, Text]:
    """Return the command, or why it is not shown."""
    if isinstance(command, Text) or is_visible(command):
        return command
    return WithheldError(command).reason
