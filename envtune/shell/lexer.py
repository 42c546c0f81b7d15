"""Split the text of a shell script into tokens, quotes and substitutions kept as they are written.

Every error raises `ShellSyntaxError`; the tokens before it can still be used, as a shell runs a script up to its
syntax error.
Time is linear in the length of the text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import Optional

from envtune.messages import Message, Text

MAX_DEPTH = 60  # nesting of quotes, substitutions and blocks; real scripts stay below ten
REDIRECTIONS = frozenset(("<", ">", ">>", "<<", "<<-", "<<<", "<>", ">|", ">&", "<&", "&>", "&>>"))
_PLAIN = re.compile(r"[^ \t\n|&;()<>'\"\\$`]+")  # a carriage return is a character like any other
_BLANK = re.compile(r"(?:[ \t]|\\\n)+")
_OPERATOR = re.compile(r";;&|;;|;&|&&|\|\||\|&|&>>|&>|<<<|<<-|<<|<>|>>|>\||>&|<&|[|&;()<>]")
_INSIDE = re.compile(r"[^'\"\\$`(){}]+")
_ASSIGNED = re.compile(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=$")


class ShellSyntaxError(Exception):
    """The text cannot be parsed from `line` on; `reason` says why."""

    def __init__(self, line: int, reason: Text) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason


@dataclass(frozen=True)
class Token:
    """A word (raw, with its quotes), an operator, a line end, `((...))`, or the point at which reading stopped."""

    kind: str  # word | op | nl | arith | end
    text: str
    line: int
    problem: Optional[Text] = None


def tokenize(text: str) -> list[Token]:
    """Return the tokens of a script; the last one is `end`, whose `problem` says what is wrong there, if anything."""
    ends = [at.start() for at in re.finditer("\n", text)]
    tokens: list[Token] = []
    try:
        _scan(text, ends, tokens)
    except ShellSyntaxError as error:
        tokens.append(Token("end", "", bisect_right(ends, error.line - 1) + 1, error.reason))
    else:
        tokens.append(Token("end", "", len(ends) + 1))
    return tokens


def _scan(text: str, ends: list[int], tokens: list[Token]) -> None:
    """Append the tokens; a ShellSyntaxError raised here carries the offset, not the line."""
    at, size = 0, len(text)
    documents: list[tuple[str, bool]] = []
    while at < size:
        blank = _BLANK.match(text, at)
        if blank is not None:
            at = blank.end()
            continue
        if text[at] == "#":
            end = text.find("\n", at)
            at = size if end < 0 else end
            continue
        kind, end = _token_at(text, at)
        token = Token(kind, text[at + 2 : end - 2] if kind == "arith" else text[at:end], bisect_right(ends, at - 1) + 1)
        at = end
        if kind == "word" and tokens and tokens[-1].text in ("<<", "<<-") and tokens[-1].kind == "op":
            documents.append((re.sub(r"['\"\\]", "", token.text), tokens[-1].text == "<<-"))
        elif kind == "word" and token.text.isdigit() and text[at : at + 1] in ("<", ">"):
            continue  # the descriptor of a redirection
        elif kind == "nl":
            at = _after_documents(text, at, documents)
        tokens.append(token)


def _token_at(text: str, at: int) -> tuple[str, int]:
    """Return the kind of the token at `at`, and its end."""
    if text[at] == "\n":
        return "nl", at + 1
    if text.startswith("((", at) and text.startswith("))", end_of_parens(text, at) - 2):
        return "arith", end_of_parens(text, at)
    if text.startswith(("<(", ">("), at):
        return "word", end_of_parens(text, at + 1)
    operator = _OPERATOR.match(text, at)
    if operator is not None:
        return "op", operator.end()
    end = _end_of_word(text, at)
    if end == at:
        raise ShellSyntaxError(at, Message("unexpected {text!r}", text=text[at]))
    return "word", end


def _after_documents(text: str, at: int, documents: list[tuple[str, bool]]) -> int:
    """Return the offset after the here-documents that were announced on the line just ended."""
    while documents:
        delimiter, tabs = documents.pop(0)
        while at < len(text):
            end = text.find("\n", at)
            row, at = (text[at:], len(text)) if end < 0 else (text[at:end], end + 1)
            if (row.lstrip("\t") if tabs else row) == delimiter:
                break
    return at


def _end_of_word(text: str, start: int) -> int:
    at = start
    while at < len(text):
        plain = _PLAIN.match(text, at)
        if plain is not None:
            at = plain.end()
        elif text[at] in "'\"\\$`":
            at = end_of_quoted(text, at)
        elif text[at] == "(" and _ASSIGNED.match(text[start:at]):
            at = end_of_parens(text, at)
        else:
            break
    return at


def end_of_quoted(text: str, at: int, depth: int = 0) -> int:
    """Return the offset after the quote, escape, substitution or dollar sign at `at`."""
    if depth > MAX_DEPTH:
        raise ShellSyntaxError(at, Message("nested too deeply"))
    if text[at] == "\\":
        return min(at + 2, len(text))
    if text[at] == "'":
        return _closing(text, at, "'")
    if text[at] == '"':
        return _end_of_double(text, at, depth)
    if text[at] == "`":
        return _closing_escaped(text, at, "`")
    return _end_of_dollar(text, at, depth)


def _end_of_dollar(text: str, at: int, depth: int) -> int:
    if text.startswith("$(", at):
        return end_of_parens(text, at + 1, depth + 1)
    if text.startswith("${", at):
        return _end_of_braces(text, at, depth + 1)
    if text.startswith("$'", at):
        return _closing_escaped(text, at + 1, "'")
    return at + 1


def _closing(text: str, at: int, quote: str) -> int:
    end = text.find(quote, at + 1)
    if end < 0:
        raise ShellSyntaxError(at, Message("the quote {quote} is never closed", quote=quote))
    return end + 1


def _closing_escaped(text: str, at: int, quote: str) -> int:
    closing = re.compile(rf"(?:[^\\{quote}]|\\.)*{quote}", re.DOTALL).match(text, at + 1)
    if closing is None:
        raise ShellSyntaxError(at, Message("the quote {quote} is never closed", quote=quote))
    return closing.end()


_IN_DOUBLE = re.compile(r'[^"\\$`]+')


def _end_of_double(text: str, start: int, depth: int) -> int:
    at = start + 1
    while at < len(text):
        plain = _IN_DOUBLE.match(text, at)
        if plain is not None:
            at = plain.end()
        elif text[at] == '"':
            return at + 1
        elif text.startswith("$'", at):
            at += 1  # no quote inside double quotes
        else:
            at = end_of_quoted(text, at, depth + 1)
    raise ShellSyntaxError(start, Message('the quote " is never closed'))


def end_of_parens(text: str, start: int, depth: int = 0) -> int:
    """Return the offset after the `)` that closes the `(` at `start`."""
    at, level = start, 0
    while at < len(text):
        plain = _INSIDE.match(text, at)
        if plain is not None:
            at = plain.end()
            comment = re.search(r"(?:^|\s)#", plain.group())
            if comment is not None:
                end = text.find("\n", plain.start() + comment.start() + 1)
                at = len(text) if end < 0 else end
        elif text[at] in "()":
            level += 1 if text[at] == "(" else -1
            at += 1
            if level == 0:
                return at
        elif text[at] in "{}":
            at += 1
        else:
            at = end_of_quoted(text, at, depth + 1)
    raise ShellSyntaxError(start, Message("a ( is never closed"))


def _end_of_braces(text: str, start: int, depth: int) -> int:
    at = start + 2
    while at < len(text):
        plain = _INSIDE.match(text, at)
        if plain is not None:
            at = plain.end()
        elif text[at] == "}":
            return at + 1
        elif text[at] in "(){":
            at += 1
        else:
            at = end_of_quoted(text, at, depth + 1)
    raise ShellSyntaxError(start, Message("a ${ is never closed"))
