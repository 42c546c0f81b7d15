"""Evaluate the conditions of a shell script that reading can decide: `[ -f x ]`, `[[ $a == b ]]`. None: unknown."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from typing import Callable, Mapping, Optional, Sequence

from envtune.errors import HostError, Missing
from envtune.messages import Text
from envtune.shell.expansion import Shell, Value, pattern_of, value_of
from envtune.shell.lexer import Token
from envtune.shell.machine import Machine

_INTEGERS: Mapping[str, Callable[[int, int], bool]] = {
    "-eq": lambda a, b: a == b,
    "-ne": lambda a, b: a != b,
    "-lt": lambda a, b: a < b,
    "-le": lambda a, b: a <= b,
    "-gt": lambda a, b: a > b,
    "-ge": lambda a, b: a >= b,
}
_KINDS = {"-f": "file", "-d": "dir", "-e": "", "-a": "", "-s": "file", "-L": "link", "-h": "link"}


def bracket(fields: Sequence[Value], machine: Machine, cwd: Optional[str]) -> Optional[bool]:
    """Evaluate `[ ... ]`, given without its brackets."""
    for operator, stop in (("-o", True), ("-a", False)):
        if (operator in fields[1:-1] and len(fields) > 4) or (operator in fields[1:-1] and fields[1] == operator):
            at = list(fields).index(operator, 1)
            return _either(bracket(fields[:at], machine, cwd), bracket(fields[at + 1 :], machine, cwd), stop)
    if fields and fields[0] == "!" and len(fields) > 1:
        inner = bracket(fields[1:], machine, cwd)
        return None if inner is None else not inner
    if len(fields) == 1:
        return None if isinstance(fields[0], Text) else bool(fields[0])
    if len(fields) == 2 and isinstance(fields[0], str):
        return _unary(fields[0], fields[1], machine, cwd)
    if len(fields) == 3 and isinstance(fields[1], str):
        return _binary(fields[0], fields[1], fields[2])
    return False if not fields else None


def _either(first: Optional[bool], second: Optional[bool], stop: bool) -> Optional[bool]:
    """Evaluate `or` (`stop` True) and `and` (`stop` False) over results that may be unknown."""
    if stop in (first, second):
        return stop
    return None if None in (first, second) else not stop


def _unary(operator: str, operand: Value, machine: Machine, cwd: Optional[str]) -> Optional[bool]:
    if isinstance(operand, Text):
        return None
    if operator in ("-z", "-n"):
        return (operand == "") is (operator == "-z")
    if operator not in _KINDS and operator not in ("-r", "-w", "-x"):
        return None
    if not operand:
        return False
    path = operand if operand.startswith("/") else cwd and posixpath.join(cwd, operand)
    return _file_test(operator, path, machine) if path else None


def _file_test(operator: str, path: str, machine: Machine) -> Optional[bool]:
    try:
        status = machine.stat(path, follow=operator not in ("-L", "-h"))
    except Missing:
        return False
    except HostError:
        return None
    if operator not in _KINDS:
        return None  # whether the job may read, write or execute it depends on its user
    kind = _KINDS[operator]
    return (not kind or status.kind == kind) and (operator != "-s" or status.size > 0)


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


def double_bracket(words: Sequence[Token], shell: Shell, machine: Machine, cwd: Optional[str]) -> Optional[bool]:
    """Evaluate `[[ ... ]]`, given without its brackets."""
    texts = [token.text for token in words]
    if "(" in texts:
        return None
    for operator, stop in (("||", True), ("&&", False)):
        if operator in texts:
            at = texts.index(operator)
            first = double_bracket(words[:at], shell, machine, cwd)
            return _either(first, double_bracket(words[at + 1 :], shell, machine, cwd), stop)
    if texts[:1] == ["!"]:
        inner = double_bracket(words[1:], shell, machine, cwd)
        return None if inner is None else not inner
    if any(token.kind == "op" for token in words) or "=~" in texts:
        return None
    return _single_test(texts, shell, machine, cwd)


def _single_test(texts: Sequence[str], shell: Shell, machine: Machine, cwd: Optional[str]) -> Optional[bool]:
    """Evaluate one comparison or test of `[[ ]]`; the right side of `==` is a pattern."""
    if len(texts) == 3 and texts[1] in ("=", "==", "!="):
        value, pattern = value_of(texts[0], shell), pattern_of(texts[2], shell)
        if isinstance(value, Text) or isinstance(pattern, Text):
            return None
        return fnmatch.fnmatchcase(value, pattern) is (texts[1] != "!=")
    if texts[:1] == ["-v"] and len(texts) == 2:
        variable = shell.lookup(texts[1])
        return None if isinstance(variable, Text) else variable is not None
    return bracket([value_of(text, shell) for text in texts], machine, cwd)


def matches_branch(word: str, patterns: Sequence[str], shell: Shell) -> Optional[bool]:
    """Return whether the word of a `case` matches one of a branch's patterns; None: unknown."""
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
