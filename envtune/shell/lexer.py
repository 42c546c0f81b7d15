"""Split the text of a shell script into tokens, keeping quotes and substitutions as written.

Every error raises `ShellSyntaxError`; the tokens before it can still be used, as a shell runs a script up to its
syntax error.
Time is linear in the length of the text.
"""

from __future__ import annotations

import re
from typing import Iterator, NamedTuple, Optional

from envtune.messages import Message, Text
from envtune.ranges import decimal

MAX_DEPTH = 60  # nesting of quotes, substitutions and blocks; real scripts stay below ten
REDIRECTIONS = frozenset(("<", ">", ">>", "<<", "<<-", "<<<", "<>", ">|", ">&", "<&", "&>", "&>>"))
_PLAIN = re.compile(r"[^ \t\n|&;()<>'\"\\$`]+")  # a carriage return is an ordinary character
_BLANK = re.compile(r"(?:[ \t]|\\\n)+")
_OPERATOR = re.compile(r";;&|;;|;&|&&|\|\||\|&|&>>|&>|<<<|<<-|<<|<>|>>|>\||>&|<&|[|&;()<>]")
_INSIDE = re.compile(r"[^'\"\\$`(){}]+")
_ESCAPED = {quote: re.compile(rf"\\.|{quote}", re.DOTALL) for quote in "`'"}
_COMMENT = re.compile(r"(?<![^\s;&|<>()])#")
_ASSIGNED = re.compile(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=$")


class ShellSyntaxError(Exception):
    """The text cannot be parsed from `line` on; `reason` says why."""

    def __init__(self, line: int, reason: Text) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason


class Document:
    """A here-document: its text without the delimiter, once the lines after its command were read; None before."""

    __slots__ = ("delimiter", "line", "quoted", "tabs", "text")

    def __init__(self, word: str, tabs: bool) -> None:
        self.delimiter = re.sub(r"['\"\\]", "", word)
        self.quoted = self.delimiter != word  # nothing in it is expanded
        self.tabs = tabs  # tabs at the beginning of its lines are removed
        self.line = 0  # the first line of the text
        self.text: Optional[str] = None


class Token(NamedTuple):
    """A word (raw, with its quotes), an operator, a line end, `((...))`, or the point at which reading stopped."""

    kind: str  # word | op | nl | arith | end
    text: str
    line: int
    problem: Optional[Text] = None
    document: Optional[Document] = None  # of the word after `<<`


def tokenize(text: str) -> Iterator[Token]:
    """Yield the tokens of a script; the last one is `end`, whose `problem` says what is wrong there, if anything."""
    scanner = _Scanner(text)
    try:
        yield from scanner.tokens()
    except ShellSyntaxError as error:
        yield Token("end", "", scanner.line_at(error.line), error.reason)
    else:
        yield Token("end", "", scanner.line_at(len(text)))


class _Scanner:
    """One pass over the text; a ShellSyntaxError raised here carries the offset, not the line."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._line, self._counted = 1, 0  # the line of offset `_counted`
        self._closing = _Closing(text)
        self._documents: list[Document] = []  # here-documents announced on this line

    def line_at(self, at: int) -> int:
        """Return the line of an offset; moving forward costs the text in between."""
        if at < self._counted:
            return self._line - self._text.count("\n", at, self._counted)
        self._line += self._text.count("\n", self._counted, at)
        self._counted = at
        return self._line

    def tokens(self) -> Iterator[Token]:
        text, at, previous = self._text, 0, Token("nl", "", 0)
        while at < len(text):
            blank = _BLANK.match(text, at)
            if blank is not None:
                at = blank.end()
                continue
            if text[at] == "#":
                at = _line_end(text, at)
                continue
            kind, end = self._token_at(at)
            content = text[at + 2 : end - 2] if kind == "arith" else text[at:end]
            token = Token(kind, content, self.line_at(at))
            at = end
            if kind == "word" and previous.kind == "op" and previous.text in ("<<", "<<-"):
                self._documents.append(Document(token.text, previous.text == "<<-"))
                token = token._replace(document=self._documents[-1])
            elif kind == "word" and decimal(token.text) is not None and text[at : at + 1] in ("<", ">"):
                continue  # the descriptor of a redirection
            elif kind == "nl":
                at = self._after_documents(at)
            yield token
            previous = token

    def _token_at(self, at: int) -> tuple[str, int]:
        """Return the kind of the token at `at`, and its end."""
        text = self._text
        if text[at] == "\n":
            return "nl", at + 1
        if text.startswith("((", at):
            end = self._closing.end_of(at)
            if text.startswith("))", end - 2):
                return "arith", end
        if text.startswith(("<(", ">("), at):
            return "word", end_of_parens(text, at + 1)
        operator = _OPERATOR.match(text, at)
        if operator is not None:
            return "op", operator.end()
        end = _end_of_word(text, at)
        if end == at:
            raise ShellSyntaxError(at, Message("unexpected {text!r}", text=text[at]))
        return "word", end

    def _after_documents(self, at: int) -> int:
        """Return the offset after the here-documents that were announced on the line just ended."""
        text = self._text
        for document in self._documents:
            document.line, rows = self.line_at(min(at, len(text))), list[str]()
            while at < len(text):
                end = _line_end(text, at)
                row, at = text[at:end], end + 1
                row = row.lstrip("\t") if document.tabs else row
                if row == document.delimiter:
                    break
                rows.append(row)
            document.text = "".join(f"{row}\n" for row in rows)
        self._documents = []
        return min(at, len(text))


class _Closing:
    """Lookahead for closing parentheses, to distinguish `((1+2))` from `((a); b)`: each is found once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._ends: dict[int, int] = {}
        self._left = 4 * len(text) + 1000  # characters; here-documents can hide what was found before

    def end_of(self, start: int) -> int:
        """Return the offset after the `)` that closes the `(` at `start`."""
        if start not in self._ends:
            end = end_of_parens(self._text, start, ends=self._ends)
            self._left -= end - start
            if self._left < 0:
                raise ShellSyntaxError(start, Message("nested too deeply"))
        return self._ends[start]


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


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
        raise ShellSyntaxError(at, Message("unclosed quote {quote}", quote=quote))
    return end + 1


def _closing_escaped(text: str, at: int, quote: str) -> int:
    for special in _ESCAPED[quote].finditer(text, at + 1):
        if special[0] == quote:
            return special.end()
    raise ShellSyntaxError(at, Message("unclosed quote {quote}", quote=quote))


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
    raise ShellSyntaxError(start, Message('unclosed quote "'))


def end_of_parens(text: str, start: int, depth: int = 0, ends: Optional[dict[int, int]] = None) -> int:
    """Return the offset after the `)` that closes the `(` at `start`; `ends` records it for every `(` in between."""
    at, opened = start, list[int]()
    while at < len(text):
        plain = _INSIDE.match(text, at)
        if plain is not None:
            comment = _COMMENT.search(text, at, plain.end())
            at = plain.end() if comment is None else _line_end(text, comment.start())
        elif text[at] in "()":
            at += 1
            if text[at - 1] == "(":
                opened.append(at - 1)
                continue
            closed = opened.pop()
            if ends is not None:
                ends[closed] = at
            if not opened:
                return at
        elif text[at] in "{}":
            at += 1
        else:
            at = end_of_quoted(text, at, depth + 1)
    raise ShellSyntaxError(start, Message("unclosed ("))


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
    raise ShellSyntaxError(start, Message("unclosed ${"))
