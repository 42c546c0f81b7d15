"""Expand the words of a shell script as far as they are known: quotes, `$A`, `${A:-x}`, `~`, field splitting.

An unknown value (an argument of the script, the output of a command) is a `Text` that says why, and so is everything
it becomes part of.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Callable, Iterable, Iterator, Optional, Sequence, Union

from envtune.messages import Message, Text
from envtune.ranges import decimal
from envtune.shell.budget import MAX_VALUE, Budget
from envtune.shell.lexer import ShellSyntaxError, end_of_parens, end_of_quoted
from envtune.shell.patterns import parse_pattern, quoted_pattern

Value = Union[str, Text]
_PLAIN = re.compile(r"[^'\"\\$`]+")
_PLAIN_QUOTED = re.compile(r'[^"\\$`]+')
_NAME = re.compile(r"[A-Za-z_]\w*")
_PARAMETER = re.compile(r"(#?)([A-Za-z_]\w*|[0-9]+|[@*#?$!-])(\[[^\]]*\])?(.*)", re.DOTALL)
_PARAMETER_OPERATOR = re.compile(r":?[-=+?]|##?|%%?|//?|:")
_BLANKS = (" ", "\t", "\n")  # the default IFS: what splits an unquoted expansion
_OPERAND = r"(-?[0-9]+|\$?[A-Za-z_]\w*)"
_SUM = re.compile(rf"\s*{_OPERAND}\s*(?:([-+*])\s*{_OPERAND}\s*)?")
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,14})")  # another leading zero makes it octal
_CALCULATED = re.compile(r"\b([A-Za-z_]\w*)\s*(?:(?:[-+*/%&|^]|<<|>>)?=(?!=)|\+\+|--)|(?:\+\+|--)\s*([A-Za-z_]\w*)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "e": "\x1b"}


def unknown(raw: str, place: str) -> Text:
    """Return why something that exists only in the running job is unknown; `place` is the file:line that uses it."""
    word = raw if len(raw) <= 60 else raw[:60] + "..."
    return Message("{word} is unknown until the job runs ({place})", word=word, place=place)


@dataclass(frozen=True)
class Shell:
    """What expansion needs from the running script. Every result may be a Text: unknown, and why."""

    lookup: Callable[[str], Optional[Value]]  # None: not set
    assign: Callable[[str, Value], None]
    output: Callable[[str], Value]  # of a command substitution
    arguments: Optional[Sequence[Value]]  # None: unknown
    script: str  # $0
    place: str  # file:line
    budget: Budget

    def unknown(self, raw: str) -> Text:
        """Return why a part that is not expanded is unknown."""
        return unknown(raw, self.place)


@dataclass(frozen=True)
class _Part:
    text: Value
    quoted: bool  # not split into fields
    literal: bool = True  # written literally, not the result of an expansion


def value_of(raw: str, shell: Shell) -> Value:
    """Return the word as one string, as on the right of an assignment."""
    return joined((part.text for part in _parts(_with_home(raw, shell), shell, assignment=True)), shell)


def pattern_of(raw: str, shell: Shell) -> Value:
    """Return the word as a pattern for `parse_pattern`, in which quoted characters match themselves."""
    return joined((_as_pattern(part) for part in _parts(raw, shell)), shell)


def _as_pattern(part: _Part) -> Value:
    literal = isinstance(part.text, str) and part.quoted and part.literal
    return quoted_pattern(str(part.text)) if literal else part.text


def fields_of(raw: str, shell: Shell) -> list[Value]:
    """Return the fields the word becomes on a command line; an unquoted expansion may become none or several."""
    if raw in ('"$@"', "$@", '"$*"', "$*"):
        shell.budget.look(len(shell.arguments or ()))
        return list(shell.arguments) if shell.arguments is not None else [shell.unknown("$@")]
    ifs = shell.lookup("IFS")
    separators = ifs if isinstance(ifs, str) else ""
    fields: list[list[Value]] = [[]]  # the pieces of each; none: not begun yet
    for part in _parts(_with_home(raw, shell), shell):
        if part.literal or part.quoted or isinstance(part.text, Text):
            fields[-1].append(part.text)
            continue
        shell.budget.look(len(part.text) // 32)  # at the speed of C
        if separators and set(part.text) & {*separators, *_BLANKS}:
            fields[-1] = [shell.unknown(raw)]  # split by the script's own IFS
        else:
            _split(part.text, fields, shell)
    return [joined(pieces, shell) for pieces in fields if pieces]


def _split(text: str, fields: list[list[Value]], shell: Shell) -> None:
    """Add the result of an unquoted expansion to the fields; blanks in it begin new ones."""
    if not any(blank in text for blank in _BLANKS):
        if text:
            fields[-1].append(text)
        return
    pieces = re.split(r"[ \t\n]+", text)
    shell.budget.make(len(text), len(pieces))
    for number, piece in enumerate(pieces):
        if number:
            fields.append([])
        if piece:
            fields[-1].append(piece)


def joined(parts: Iterable[Value], shell: Shell) -> Value:
    """Return the parts as one string; unknown if one of them is, or if it is too long for any program.

    All parts are evaluated, since expanding them may assign.
    """
    texts: list[str] = []
    length, reason = 0, None
    for part in parts:
        if isinstance(part, Text):
            reason = reason or part
        else:
            length += len(part)
            if length <= MAX_VALUE:
                texts.append(part)
    if reason is None and length > MAX_VALUE:
        reason = shell.unknown(f"a value of more than {MAX_VALUE} characters")
    if reason is not None:
        return reason
    if len(texts) == 1:
        return texts[0]
    shell.budget.make(length)
    return "".join(texts)


def _with_home(raw: str, shell: Shell) -> str:
    """Return the word with a leading `~` written as `$HOME`."""
    return "$HOME" + raw[1:] if raw == "~" or raw.startswith("~/") else raw


def _parts(raw: str, shell: Shell, assignment: bool = False) -> Iterator[_Part]:
    shell.budget.look(len(raw))
    if raw.startswith(("<(", ">(")):
        yield _Part(shell.unknown(raw), True)
        return
    at = 0
    while at < len(raw):
        plain = _PLAIN.match(raw, at)
        if plain is not None:
            at = plain.end()
            yield _Part(_with_homes(plain.group(), shell) if assignment else plain.group(), False)
            continue
        try:
            end = end_of_quoted(raw, at)
        except ShellSyntaxError:
            yield _Part(shell.unknown(raw[at:]), True)
            return
        piece, at = raw[at:end], end
        if piece[0] in "\"'\\":
            yield from _quoted(piece, shell)
        elif piece != "$" or raw[at : at + 1] != '"':  # $"..." is "..." in the C locale
            text, at = _dollar(raw, piece, at, shell)
            yield _Part(text, piece.startswith("$'"), piece == "$" and text == "$")


def _with_homes(text: str, shell: Shell) -> Value:
    """Expand `~/` after a colon, as in the search paths that are assigned."""
    if ":~/" not in text:
        return text
    home = shell.lookup("HOME")
    return _replace(text, ":~/", f":{home}/", shell) if isinstance(home, str) else shell.unknown("~")


def _replace(text: str, old: str, new: str, shell: Shell, count: int = -1) -> Value:
    """Return the text with `old` replaced, `count` times or always; unknown if it would become too long."""
    shell.budget.look(len(text) + len(old))
    found = text.count(old) if count < 0 else 1
    if len(text) + found * (len(new) - len(old)) > MAX_VALUE:
        return shell.unknown(f"a value of more than {MAX_VALUE} characters")
    shell.budget.make(len(text) + found * len(new))
    return text.replace(old, new, count)


def _quoted(piece: str, shell: Shell) -> Iterator[_Part]:
    """Yield the parts of `"..."`, `'...'` or an escaped character."""
    if piece[0] == '"':
        yield _Part("", True)
        yield from _double(piece[1:-1], shell)
    elif piece[0] == "'":
        yield _Part(piece[1:-1], True)
    else:
        yield _Part("" if piece == "\\\n" else piece[1:], True)


def _double(inner: str, shell: Shell) -> Iterator[_Part]:
    """Yield the parts between double quotes."""
    shell.budget.look(len(inner))
    at = 0
    while at < len(inner):
        plain = _PLAIN_QUOTED.match(inner, at)
        if plain is not None:
            at = plain.end()
            yield _Part(plain.group(), True)
            continue
        char = inner[at]
        if char == "\\":
            following = inner[at + 1 : at + 2]
            yield _Part("" if following == "\n" else following if following in '$`"\\' else char + following, True)
            at += 2
            continue
        if char == '"' or inner.startswith("$'", at):
            yield _Part(char, True)
            at += 1
            continue
        try:
            end = end_of_quoted(inner, at)
        except ShellSyntaxError:
            yield _Part(shell.unknown(inner[at:]), True)
            return
        text, at = _dollar(inner, inner[at:end], end, shell)
        yield _Part(text, True, False)


def _dollar(raw: str, piece: str, at: int, shell: Shell) -> tuple[Value, int]:
    """Return the value of the expansion `piece` that ends at `at`, and where it really ends."""
    if piece.startswith("`"):
        return shell.output(re.sub(r"\\([`$\\])", r"\1", piece[1:-1])), at
    if piece.startswith("$(("):
        return _arithmetic(piece, shell), at
    if piece.startswith("$("):
        return shell.output(piece[2:-1]), at
    if piece.startswith("${"):
        return _braces(piece, shell), at
    if piece.startswith("$'"):
        return _ansi(piece, shell), at
    name = _NAME.match(raw, at)
    if name is not None:
        return parameter(name.group(), shell), name.end()
    if raw[at : at + 1] and raw[at] in "0123456789@*#?$!-":
        return parameter(raw[at], shell), at + 1
    return "$", at


def _ansi(piece: str, shell: Shell) -> Value:
    """Expand `$'...'`; numeric escapes are not expanded."""
    if any(escaped not in _ESCAPES for escaped in re.findall(r"\\(.)", piece[2:-1], re.DOTALL)):
        return shell.unknown(piece)
    return re.sub(r"\\(.)", lambda m: _ESCAPES[m[1]], piece[2:-1])


def parameter(name: str, shell: Shell) -> Value:
    """Return the value of `$name`; empty if it is not set."""
    value = _parameter(name, shell)
    return "" if value is None else value


def _parameter(name: str, shell: Shell) -> Optional[Value]:
    if name == "0":
        return shell.script
    place = decimal(name)
    if place is not None:
        if shell.arguments is None:
            return shell.unknown(f"${name}")
        return shell.arguments[place - 1] if place <= len(shell.arguments) else None
    if name == "#" and shell.arguments is not None:
        return str(len(shell.arguments))
    if name in ("@", "*") and shell.arguments is not None:
        shell.budget.look(len(shell.arguments))
        return joined([part for argument in shell.arguments for part in (" ", argument)][1:], shell)
    if not _NAME.fullmatch(name):
        return shell.unknown(f"${name}")
    return shell.lookup(name)


def _arithmetic(piece: str, shell: Shell) -> Value:
    """Evaluate `$((a + 1))` with at most one operator over whole numbers; everything longer is unknown."""
    shell.budget.look(len(piece))
    for name in calculated_names(piece):
        shell.assign(name, shell.unknown(piece))
    parsed = _SUM.fullmatch(piece[3:-2])
    if parsed is None:
        return shell.unknown(piece)
    first = _number(parsed[1], piece, shell)
    second = _number(parsed[3] or "0", piece, shell)
    if isinstance(first, Text) or isinstance(second, Text):
        return first if isinstance(first, Text) else second if isinstance(second, Text) else ""
    outcome = {"+": first + second, "-": first - second, "*": first * second}.get(parsed[2], first)
    return str(outcome) if abs(outcome) < 1 << 63 else shell.unknown(piece)


def _number(word: str, piece: str, shell: Shell) -> Union[int, Text]:
    """Return the number for a digit string or a variable in `$((...))`."""
    name = _NAME.fullmatch(word.lstrip("$"))
    value: Value = word if name is None else shell.lookup(name.group()) or "0"
    if isinstance(value, Text):
        return value
    return int(value) if _WHOLE.fullmatch(value) else shell.unknown(piece)


def calculated_names(text: str) -> list[str]:
    """Return the variables that arithmetic assigns: `A = 1`, `B++`."""
    return [first or second for first, second in _CALCULATED.findall(text)]


def _braces(piece: str, shell: Shell) -> Value:
    """Expand `${name}` and its operators."""
    parsed = _PARAMETER.fullmatch(piece[2:-1])
    if parsed is None:
        return shell.unknown(piece)
    length, name, index, suffix = parsed.groups()
    if index is not None and not (name == "BASH_SOURCE" and index in ("[0]", "[@]", "[-1]")):
        return shell.unknown(piece)
    value = _parameter(name, shell)
    if length:
        return value if isinstance(value, Text) else shell.unknown(piece) if suffix else str(len(value or ""))
    operator = _PARAMETER_OPERATOR.match(suffix)
    if operator is None:
        return shell.unknown(piece) if suffix else value or ""
    word = suffix[operator.end() :]
    if operator.group() in _DEFAULTS:
        return _default(operator.group(), name, value, word, shell)
    return value if isinstance(value, Text) else _cut(operator.group(), value or "", word, piece, shell)


_DEFAULTS = ("-", ":-", "=", ":=", "+", ":+", "?", ":?")


def _default(operator: str, name: str, value: Optional[Value], word: str, shell: Shell) -> Value:
    if isinstance(value, Text):
        return value
    is_set = bool(value) if operator.startswith(":") else value is not None
    if operator.endswith("+"):
        return _word(word, shell) if is_set else ""
    if is_set:
        return value or ""
    if operator.endswith("?"):
        return shell.unknown(f"${{{name}{operator}{word}}}")
    default = _word(word, shell)
    if operator.endswith("="):
        shell.assign(name, default)
    return default


def _word(raw: str, shell: Shell) -> Value:
    return joined((part.text for part in _parts(_with_home(raw, shell), shell)), shell)


def _cut(operator: str, value: str, word: str, piece: str, shell: Shell) -> Value:
    if operator == ":":
        bounds = re.fullmatch(r"\s*(\d{1,9})\s*(?::\s*(\d{1,9})\s*)?", word)
        if bounds is None:
            return shell.unknown(piece)
        return value[int(bounds[1]) :][: int(bounds[2]) if bounds[2] else None]
    if operator in ("/", "//"):
        return _replaced(operator, value, word, piece, shell)
    pattern = pattern_of(word, shell)
    if isinstance(pattern, Text):
        return pattern
    return _without(operator, value, pattern, piece, shell)


def _replaced(operator: str, value: str, word: str, piece: str, shell: Shell) -> Value:
    """Expand `${A/old/new}` and `${A//old/new}` if `old` is not a pattern."""
    old, _, new = word.partition("/")
    text, replacement = _word(old, shell), _word(new, shell)
    if isinstance(text, Text) or isinstance(replacement, Text) or not text or re.search(r"[*?\[\\#%]", text):
        return shell.unknown(piece)
    return _replace(value, text, replacement, shell, -1 if operator == "//" else 1)


def _without(operator: str, value: str, text: str, piece: str, shell: Shell) -> Value:
    """Return `value` without the shortest (# %) or longest (## %%) beginning or end that matches."""
    shell.budget.look(4 * (len(value) + len(text)))
    pattern = parse_pattern(text)
    if pattern is None:
        return shell.unknown(piece)
    backwards = operator[0] == "%"
    ends = (pattern.reversed() if backwards else pattern).ends(value[::-1] if backwards else value)
    length = next(ends, 0) if len(operator) == 1 else max(ends, default=0)
    return value[: len(value) - length] if backwards else value[length:]


def matches_pattern(value: Value, text: Value, shell: Shell) -> Optional[bool]:
    """Return whether the whole value matches the pattern; None: unknown."""
    if isinstance(value, Text) or isinstance(text, Text):
        return None
    shell.budget.look(4 * (len(value) + len(text)))
    pattern = parse_pattern(text)
    return None if pattern is None else pattern.matches(value)


def is_array(raw: str) -> bool:
    """Return whether the right side of an assignment is an array, `(1 2 3)`."""
    try:
        return raw.startswith("(") and end_of_parens(raw, 0) == len(raw)
    except ShellSyntaxError:
        return False


def unquoted(raw: str) -> str:
    """Return the parts of a word that are neither quoted nor expansions."""
    pieces, at = [], 0
    while at < len(raw):
        plain = _PLAIN.match(raw, at)
        if plain is not None:
            pieces.append(plain.group())
        try:
            at = end_of_quoted(raw, at) if plain is None else plain.end()
        except ShellSyntaxError:
            break
    return "".join(pieces)
