"""Parse the tokens of a POSIX shell or bash script into commands; nothing is run and nothing expanded here.

Covers what launch scripts use: lists, pipelines, redirections, here-documents, if, for, while, until, select, case,
groups, subshells, functions, `[[ ]]` and `(( ))`.
"""

from __future__ import annotations

import re
from typing import Callable, Iterator, Mapping, Optional

from envtune.messages import Message
from envtune.shell.budget import BudgetExceeded
from envtune.shell.lexer import MAX_DEPTH, REDIRECTIONS, Document, ShellSyntaxError, Token, tokenize
from envtune.shell.nodes import (
    AndOr,
    Arithmetic,
    Body,
    Case,
    Command,
    Function,
    Group,
    If,
    Loop,
    Pipeline,
    Simple,
    Test,
)

MAX_TOKENS = 100_000  # of one statement at the top of a script, all of which is kept in memory
_CLOSERS = frozenset(("then", "elif", "else", "fi", "do", "done", "esac", "}"))


def statements(text: str) -> Iterator[AndOr]:
    """Yield the top-level statements one after the other; raises ShellSyntaxError if the text cannot be parsed."""
    parser = _Parser(tokenize(text))
    parser.skip_separators()
    while not parser.at_end():
        statement = parser.and_or()
        if parser.is_document_ahead():
            yield from _up_to_documents(parser, statement)
            continue
        yield statement
        parser.separator()


def _up_to_documents(parser: _Parser, statement: AndOr) -> Iterator[AndOr]:
    """Yield a statement and what follows on its line once its here-documents are read: `bash <<A; bash <<B`."""
    found = [statement]
    try:
        parser.separator()
        while parser.is_document_ahead() and not parser.at_end():
            found.append(parser.and_or())
            parser.separator()
    except ShellSyntaxError:
        yield from found
        raise
    yield from found


def statement_lines(text: str) -> list[int]:
    """Return the lines before which a line can be inserted: those on which a top-level statement begins.

    Raises ShellSyntaxError if the text cannot be parsed.
    """
    parser = _Parser(tokenize(text))
    lines: list[int] = []
    parser.skip_separators()
    while not parser.at_end():
        if parser.at_line_start():
            lines.append(parser.line)
        parser.and_or()
        parser.separator()
    return lines


class _Parser:
    def __init__(self, tokens: Iterator[Token]) -> None:
        self._tokens = tokens
        self._previous: Optional[Token] = None
        self._next = next(tokens)
        self._depth = 0
        self._left = MAX_TOKENS  # tokens that the current statement may still have
        self._document: Optional[Document] = None  # the last one
        self._leaving = 0  # how often `break` and `continue` were seen

    def _take(self) -> Token:
        token = self._next
        if token.kind != "end":
            self._previous, self._next = token, next(self._tokens)
            self._left -= token.kind != "nl"  # which are not kept
            if self._left < 0:
                raise BudgetExceeded(Message("the script is too large to analyze"), token.line)
        return token

    def _unexpected(self) -> ShellSyntaxError:
        token = self._next
        if token.kind == "end":
            return ShellSyntaxError(token.line, token.problem or Message("the script ends inside a block"))
        word = token.text.strip()[:40] or "end of line"
        return ShellSyntaxError(token.line, Message("unexpected `{word}`", word=word))

    def _is(self, *texts: str, kind: str = "op") -> bool:
        return self._next.kind == kind and self._next.text in texts

    def _need(self, text: str, kind: str = "word") -> Token:
        if not self._is(text, kind=kind):
            raise self._unexpected()
        return self._take()

    def at_end(self) -> bool:
        """Return whether everything was read; raises ShellSyntaxError if the tokens end before the text does."""
        if self._next.kind == "end" and self._next.problem is not None:
            raise self._unexpected()
        return self._next.kind == "end"

    def is_document_ahead(self) -> bool:
        """Return whether a here-document was announced whose text comes after the tokens read so far."""
        return self._document is not None and self._document.text is None

    @property
    def line(self) -> int:
        """The line number of the next token."""
        return self._next.line

    def at_line_start(self) -> bool:
        """Return whether the next token is the first on its line."""
        return self._previous is None or self._previous.kind == "nl"

    def skip_separators(self) -> None:
        """Skip newlines and `;`."""
        while self._next.kind == "nl" or self._is(";"):
            self._take()

    def _skip_line_ends(self) -> None:
        while self._next.kind == "nl":
            self._take()

    def separator(self) -> None:
        """Take what must follow a statement: `;`, `&` (already consumed), a newline or the end."""
        previous = self._previous
        if self._next.kind not in ("nl", "end") and not self._is(";") and not (previous and previous.text == "&"):
            raise self._unexpected()
        if not self._depth:
            self._left = MAX_TOKENS
        self.skip_separators()

    def and_or(self) -> AndOr:
        """Parse one statement."""
        first, others = self._pipeline(), []
        while self._is("&&", "||"):
            operator = self._take().text
            self._skip_line_ends()
            others.append((operator, self._pipeline()))
        background = self._is("&")
        if background:
            self._take()
        return AndOr(first, tuple(others), background)

    def _pipeline(self) -> Pipeline:
        negated = False
        while self._is("!", "time", kind="word"):
            negated ^= self._take().text == "!"
        commands = [self._command()]
        while self._is("|", "|&"):
            self._take()
            self._skip_line_ends()
            commands.append(self._command())
        return Pipeline(tuple(commands), negated)

    def _body(self, *closers: str) -> Body:
        """Parse statements up to one of the closing words, which is not consumed."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ShellSyntaxError(self._next.line, Message("nested too deeply"))
        body: list[AndOr] = []
        self.skip_separators()
        while not self._is(*closers, kind="word") and not self._is(*closers):
            if self._next.kind == "end":
                raise self._unexpected()
            body.append(self.and_or())
            if not self._is(*closers):
                self.separator()
        self._depth -= 1
        return tuple(body)

    def _command(self) -> Command:
        token = self._next
        if token.kind == "arith":
            self._take()
            self._redirections()
            return Arithmetic(token.text, token.line)
        if self._is("("):
            return self._group("(", ")", "op")
        block = _BLOCKS.get(token.text) if token.kind == "word" else None
        if block is not None:
            command: Command = block(self)
            self._redirections()
            return command
        if token.kind == "word" and token.text not in _CLOSERS:
            return self._simple()
        if self._is(*REDIRECTIONS):
            return self._simple()
        raise self._unexpected()

    def _group(self, opener: str, closer: str, kind: str) -> Group:
        self._need(opener, kind)
        body = self._body(closer)
        self._need(closer, kind)
        self._redirections()
        return Group(body, kind == "op")

    def _redirections(self, stdin: Optional[Token] = None) -> Optional[Token]:
        """Skip redirections; return the word of the last here-document or here-string, else `stdin`."""
        while self._is(*REDIRECTIONS):
            operator = self._take().text
            if self._next.kind != "word":
                raise self._unexpected()
            word = self._take()
            self._document = word.document or self._document
            if operator.startswith("<"):
                stdin = word if operator in ("<<", "<<-", "<<<") else None
        return stdin

    def _simple(self) -> Command:
        words: list[Token] = []
        line, stdin = self._next.line, None
        while True:
            stdin = self._redirections(stdin)
            if self._next.kind != "word":
                break
            words.append(self._take())
            if len(words) == 1 and self._is("("):
                return self._function(words[0].text)
        self._leaving += bool(words) and words[0].text in ("break", "continue")
        return Simple(tuple(words), line, stdin)

    def _function(self, name: str) -> Function:
        self._need("(", "op")
        self._need(")", "op")
        return self._function_body(name)

    def _function_body(self, name: str) -> Function:
        self._skip_line_ends()
        if self._next.text not in ("{", "(", "[[", "if", "for", "while", "until", "case", "select"):
            raise self._unexpected()
        line = self._next.line
        return Function(name, self._command(), line)

    def _named_function(self) -> Function:
        self._take()
        name = self._take().text
        if self._is("("):
            return self._function(name)
        return self._function_body(name)

    def _if(self) -> If:
        branches = []
        self._take()
        while True:
            condition = self._body("then")
            self._take()
            branches.append((condition, self._body("elif", "else", "fi")))
            if self._take().text != "elif":
                break
        other: Body = ()
        if self._previous is not None and self._previous.text == "else":
            other = self._body("fi")
            self._take()
        return If(tuple(branches), other)

    def _while(self) -> Loop:
        token = self._take()
        condition = self._body("do")
        return self._loop("", None, condition, token.line, token.text == "until")

    def _for(self) -> Loop:
        line = self._take().line
        if self._next.kind == "arith":
            names = re.findall(r"[A-Za-z_]\w*", self._take().text)
            self.skip_separators()
            return self._loop(names[0] if names else "", None, (), line)
        name, words = self._take().text, None
        self._skip_line_ends()
        if self._is("in", kind="word"):
            self._take()
            words = self._words()
        self.skip_separators()
        return self._loop(name, words, (), line)

    def _words(self) -> tuple[Token, ...]:
        words = []
        while self._next.kind == "word":
            words.append(self._take())
        return tuple(words)

    def _loop(
        self, name: str, words: Optional[tuple[Token, ...]], condition: Body, line: int, until: bool = False
    ) -> Loop:
        """Parse the body of a loop with a given header."""
        leaving = self._leaving
        body = self._loop_body()
        return Loop(name, words, condition, body, line, self._leaving > leaving, until)

    def _loop_body(self) -> Body:
        if self._is("{", kind="word"):
            return self._group("{", "}", "word").body
        self._need("do")
        body = self._body("done")
        self._take()
        return body

    def _case(self) -> Case:
        self._take()
        word = self._take()
        self._skip_line_ends()
        self._need("in")
        self._skip_line_ends()
        branches = []
        while not self._is("esac", kind="word"):
            if self._is("("):
                self._take()
            patterns = [self._take()]
            while self._is("|"):
                self._take()
                patterns.append(self._take())
            self._need(")", "op")
            branches.append((tuple(patterns), self._body(";;", ";&", ";;&", "esac")))
            if not self._is("esac", kind="word"):
                self._take()
            self._skip_line_ends()
        self._take()
        return Case(word, tuple(branches))

    def _test(self) -> Test:
        line = self._take().line
        words: list[Token] = []
        while not self._is("]]", kind="word"):
            if self._next.kind in ("nl", "end"):
                raise self._unexpected()
            words.append(self._take())
        self._take()
        return Test(tuple(words), line)


_BLOCKS: Mapping[str, Callable[[_Parser], Command]] = {
    "if": _Parser._if,
    "while": _Parser._while,
    "until": _Parser._while,
    "for": _Parser._for,
    "select": _Parser._for,
    "case": _Parser._case,
    "function": _Parser._named_function,
    "[[": _Parser._test,
    "{": lambda parser: parser._group("{", "}", "word"),
}
