"""Conditions of a shell script that can be told by reading: `[ -f x ]`, `[[ $a == b ]]`, true and false."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from typing import Callable, Mapping, Optional, Sequence

from envtune.errors import HostError, Missing
from envtune.host import Host
from envtune.messages import Text
from envtune.shell.expansion import Shell, Value, pattern_of, value_of
from envtune.shell.lexer import Token

_INTEGERS: Mapping[str, Callable[[int, int], bool]] = {
    "-eq": lambda a, b: a == b,
    "-ne": lambda a, b: a != b,
    "-lt": lambda a, b: a < b,
    "-le": lambda a, b: a <= b,
    "-gt": lambda a, b: a > b,
    "-ge": lambda a, b: a >= b,
}
_KINDS = {"-f": "file", "-d": "dir", "-e": "", "-a": "", "-s": "file", "-L": "link", "-h": "link"}


def bracket(fields: Sequence[Value], host: Host, cwd: Optional[str]) -> Optional[bool]:
    """`[ ... ]` without its brackets; None when it cannot be told."""
    for operator, stop in (("-o", True), ("-a", False)):
        if (operator in fields[1:-1] and len(fields) > 4) or (operator in fields[1:-1] and fields[1] == operator):
            at = list(fields).index(operator, 1)
            return _either(bracket(fields[:at], host, cwd), bracket(fields[at + 1 :], host, cwd), stop)
    if fields and fields[0] == "!" and len(fields) > 1:
        inner = bracket(fields[1:], host, cwd)
        return None if inner is None else not inner
    if len(fields) == 1:
        return None if isinstance(fields[0], Text) else bool(fields[0])
    if len(fields) == 2 and isinstance(fields[0], str):
        return _unary(fields[0], fields[1], host, cwd)
    if len(fields) == 3 and isinstance(fields[1], str):
        return _binary(fields[0], fields[1], fields[2])
    return False if not fields else None


def _either(left: Optional[bool], right: Optional[bool], stop: bool) -> Optional[bool]:
    """Or (`stop` True) and and (`stop` False) with unknowns."""
    if stop in (left, right):
        return stop
    return None if None in (left, right) else not stop


def _unary(operator: str, operand: Value, host: Host, cwd: Optional[str]) -> Optional[bool]:
    if isinstance(operand, Text):
        return None
    if operator in ("-z", "-n"):
        return (operand == "") is (operator == "-z")
    if operator not in _KINDS and operator not in ("-r", "-w", "-x"):
        return None
    if not operand:
        return False
    path = operand if operand.startswith("/") else cwd and posixpath.join(cwd, operand)
    return _file_test(operator, path, host) if path else None


def _file_test(operator: str, path: str, host: Host) -> Optional[bool]:
    try:
        found = host.stat(path, follow=operator not in ("-L", "-h"))
    except Missing:
        return False
    except HostError:
        return None
    if operator not in _KINDS:
        return None  # whether the job may read, write or run it is not ours to say
    wanted = _KINDS[operator]
    return (not wanted or found.kind == wanted) and (operator != "-s" or found.size > 0)


def _binary(left: Value, operator: str, right: Value) -> Optional[bool]:
    if isinstance(left, Text) or isinstance(right, Text):
        return None
    if operator in ("=", "=="):
        return left == right
    if operator == "!=":
        return left != right
    compare = _INTEGERS.get(operator)
    if compare is None or not re.fullmatch(r"-?\d{1,18}", left) or not re.fullmatch(r"-?\d{1,18}", right):
        return None
    return compare(int(left), int(right))


def double_bracket(words: Sequence[Token], shell: Shell, host: Host, cwd: Optional[str]) -> Optional[bool]:
    """`[[ ... ]]` without its brackets; None when it cannot be told."""
    texts = [token.text for token in words]
    if "(" in texts:
        return None
    for operator, stop in (("||", True), ("&&", False)):
        if operator in texts:
            at = texts.index(operator)
            left = double_bracket(words[:at], shell, host, cwd)
            return _either(left, double_bracket(words[at + 1 :], shell, host, cwd), stop)
    if texts[:1] == ["!"]:
        inner = double_bracket(words[1:], shell, host, cwd)
        return None if inner is None else not inner
    if any(token.kind == "op" for token in words) or "=~" in texts:
        return None
    return _single_test(texts, shell, host, cwd)


def _single_test(texts: Sequence[str], shell: Shell, host: Host, cwd: Optional[str]) -> Optional[bool]:
    """One comparison or test of `[[ ]]`: the right side of `==` is a pattern."""
    if len(texts) == 3 and texts[1] in ("=", "==", "!="):
        left, pattern = value_of(texts[0], shell), pattern_of(texts[2], shell)
        if isinstance(left, Text) or isinstance(pattern, Text):
            return None
        return fnmatch.fnmatchcase(left, pattern) is (texts[1] != "!=")
    if texts[:1] == ["-v"] and len(texts) == 2:
        value = shell.lookup(texts[1])
        return None if isinstance(value, Text) else value is not None
    return bracket([value_of(text, shell) for text in texts], host, cwd)


def chosen_branch(word: str, patterns: Sequence[str], shell: Shell) -> Optional[bool]:
    """Whether the word of a `case` matches one of a branch's patterns."""
    value = value_of(word, shell)
    answers: list[Optional[bool]] = []
    for raw in patterns:
        pattern = pattern_of(raw, shell)
        if raw == "*":
            answers.append(True)
        elif isinstance(value, Text) or isinstance(pattern, Text):
            answers.append(None)
        else:
            answers.append(fnmatch.fnmatchcase(value, pattern))
    return True if True in answers else None if None in answers else False
