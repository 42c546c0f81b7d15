"""Evaluate the conditions of a shell script that reading can decide: `[ -f x ]`, `[[ $a == b ]]`. None: unknown."""

from __future__ import annotations

import posixpath
import re
from typing import Callable, Iterator, Mapping, Optional, Sequence

from envtune.errors import HostError, Missing
from envtune.messages import Text
from envtune.shell.expansion import Shell, Value, matches_pattern, pattern_of, value_of
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
        parts = _split(fields, operator)
        if len(parts) > 1:
            return _either([bracket(part, machine, cwd) for part in parts], stop)
    if fields and fields[0] == "!" and len(fields) > 1:
        # With more than five fields there is no operator in between that could be recognized with fewer.
        count = 1
        while len(fields) - count > 4 and fields[count] == "!":
            count += 1
        inner = bracket(fields[count:], machine, cwd)
        return None if inner is None else inner is (count % 2 == 0)
    return _primary(fields, machine, cwd)


def _split(fields: Sequence[Value], operator: str) -> list[Sequence[Value]]:
    """Return the parts between `-o` or `-a`, where these can be operators and not operands."""
    parts: list[Sequence[Value]] = []
    start, size = 0, len(fields)
    for at, field in enumerate(fields):
        inside = start < at < size - 1
        if inside and field == operator and (size - start > 4 or at == start + 1):
            parts.append(fields[start:at])
            start = at + 1
    return [*parts, fields[start:]]


def _primary(fields: Sequence[Value], machine: Machine, cwd: Optional[str]) -> Optional[bool]:
    if len(fields) == 1:
        return None if isinstance(fields[0], Text) else bool(fields[0])
    if len(fields) == 2 and isinstance(fields[0], str):
        return _unary(fields[0], fields[1], machine, cwd)
    if len(fields) == 3 and isinstance(fields[1], str):
        return _binary(fields[0], fields[1], fields[2])
    return False if not fields else None


def _either(outcomes: Sequence[Optional[bool]], stop: bool) -> Optional[bool]:
    """Evaluate `or` (`stop` True) and `and` (`stop` False) over results that may be unknown."""
    if stop in outcomes:
        return stop
    return None if None in outcomes else not stop


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
    if any(token.text == "(" for token in words):
        return None
    return _either([_all_of(part, shell, machine, cwd) for part in _between(words, "||")], True)


def _all_of(words: Sequence[Token], shell: Shell, machine: Machine, cwd: Optional[str]) -> Optional[bool]:
    return _either([_negatable(part, shell, machine, cwd) for part in _between(words, "&&")], False)


def _between(words: Sequence[Token], operator: str) -> Iterator[Sequence[Token]]:
    start = 0
    for at, token in enumerate(words):
        if token.text == operator:
            yield words[start:at]
            start = at + 1
    yield words[start:]


def _negatable(words: Sequence[Token], shell: Shell, machine: Machine, cwd: Optional[str]) -> Optional[bool]:
    count = next((at for at, token in enumerate(words) if token.text != "!"), len(words))
    texts = [token.text for token in words[count:]]
    if any(token.kind == "op" for token in words) or "=~" in texts:
        return None
    inner = _single_test(texts, shell, machine, cwd)
    return None if inner is None else inner is (count % 2 == 0)


def _single_test(texts: Sequence[str], shell: Shell, machine: Machine, cwd: Optional[str]) -> Optional[bool]:
    """Evaluate one comparison or test of `[[ ]]`; the right side of `==` is a pattern."""
    if len(texts) == 3 and texts[1] in ("=", "==", "!="):
        equal = matches_pattern(value_of(texts[0], shell), pattern_of(texts[2], shell), shell)
        return None if equal is None else equal is (texts[1] != "!=")
    if texts[:1] == ["-v"] and len(texts) == 2:
        variable = shell.lookup(texts[1])
        return None if isinstance(variable, Text) else variable is not None
    return bracket([value_of(text, shell) for text in texts], machine, cwd)


def matches_branch(value: Value, patterns: Sequence[str], shell: Shell) -> Optional[bool]:
    """Return whether the value of a `case` matches one of a branch's patterns; None: unknown."""
    return _either([raw == "*" or matches_pattern(value, pattern_of(raw, shell), shell) for raw in patterns], True)
