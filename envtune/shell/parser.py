"""The commands of a POSIX shell or bash script, from its tokens; nothing is run and nothing expanded here.

Covers what launch scripts use: lists, pipelines, redirections, here-documents, if, for, while, until, select, case,
groups, subshells, functions, `[[ ]]` and `(( ))`.
"""

from __future__ import annotations

import re
from typing import Callable, Iterator, Mapping

from envtune.messages import Message
from envtune.shell.lexer import DEPTH, REDIRECTIONS, Broken, Token, tokens
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

_CLOSERS = frozenset(("then", "elif", "else", "fi", "do", "done", "esac", "}"))


def statements(text: str) -> Iterator[AndOr]:
    """The top-level statements one after the other; raises Broken where the text cannot be followed."""
    parser = _Parser(tokens(text))
    parser.skip_separators()
    while not parser.at_end():
        yield parser.and_or()
        parser.separator()


def starts(text: str) -> list[int]:
    """The lines on which a top-level statement begins and before which a line can be put; raises Broken as above."""
    parser = _Parser(tokens(text))
    found: list[int] = []
    parser.skip_separators()
    while not parser.at_end():
        if parser.at_line_start():
            found.append(parser.line)
        parser.and_or()
        parser.separator()
    return found


class _Parser:
    def __init__(self, found: list[Token]) -> None:
        self._tokens = found
        self._at = 0
        self._depth = 0

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        token = self._next
        if token.kind != "end":
            self._at += 1
        return token

    def _fail(self) -> Broken:
        token = self._next
        if token.kind == "end":
            return Broken(token.line, token.problem or Message("the script ends inside a block"))
        word = token.text.strip()[:40] or "end of line"
        return Broken(token.line, Message("unexpected `{word}`", word=word))

    def _is(self, *texts: str, kind: str = "op") -> bool:
        return self._next.kind == kind and self._next.text in texts

    def _need(self, text: str, kind: str = "word") -> Token:
        if not self._is(text, kind=kind):
            raise self._fail()
        return self._take()

    def at_end(self) -> bool:
        """Whether everything was read; raises Broken when reading ended before."""
        if self._next.kind == "end" and self._next.problem is not None:
            raise self._fail()
        return self._next.kind == "end"

    @property
    def line(self) -> int:
        """The line of the next token."""
        return self._next.line

    def at_line_start(self) -> bool:
        """Whether nothing stands before the next token on its line."""
        return self._at == 0 or self._tokens[self._at - 1].kind == "nl"

    def skip_separators(self) -> None:
        """Step over line ends and `;`."""
        while self._next.kind == "nl" or self._is(";"):
            self._take()

    def _lines(self) -> None:
        while self._next.kind == "nl":
            self._take()

    def separator(self) -> None:
        """What must follow a statement: `;`, `&` (taken already), a line end or the end."""
        before = self._tokens[self._at - 1] if self._at else None
        if self._next.kind not in ("nl", "end") and not self._is(";") and not (before and before.text == "&"):
            raise self._fail()
        self.skip_separators()

    def and_or(self) -> AndOr:
        """One statement."""
        first, rest = self._pipeline(), []
        while self._is("&&", "||"):
            operator = self._take().text
            self._lines()
            rest.append((operator, self._pipeline()))
        background = self._is("&")
        if background:
            self._take()
        return AndOr(first, tuple(rest), background)

    def _pipeline(self) -> Pipeline:
        negated = False
        while self._is("!", "time", kind="word"):
            negated ^= self._take().text == "!"
        commands = [self._command()]
        while self._is("|", "|&"):
            self._take()
            self._lines()
            commands.append(self._command())
        return Pipeline(tuple(commands), negated)

    def _body(self, *closers: str) -> Body:
        """Statements up to one of the closing words, which is left."""
        self._depth += 1
        if self._depth > DEPTH:
            raise Broken(self._next.line, Message("nested too deeply"))
        found: list[AndOr] = []
        self.skip_separators()
        while not self._is(*closers, kind="word") and not self._is(*closers):
            if self._next.kind == "end":
                raise self._fail()
            found.append(self.and_or())
            if not self._is(*closers):
                self.separator()
        self._depth -= 1
        return tuple(found)

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
        raise self._fail()

    def _group(self, opener: str, closer: str, kind: str) -> Group:
        self._need(opener, kind)
        body = self._body(closer)
        self._need(closer, kind)
        self._redirections()
        return Group(body, kind == "op")

    def _redirections(self) -> None:
        while self._is(*REDIRECTIONS):
            self._take()
            if self._next.kind != "word":
                raise self._fail()
            self._take()

    def _simple(self) -> Command:
        words: list[Token] = []
        line = self._next.line
        while True:
            self._redirections()
            if self._next.kind != "word":
                break
            words.append(self._take())
            if len(words) == 1 and self._is("("):
                return self._function(words[0].text)
        return Simple(tuple(words), line)

    def _function(self, name: str) -> Function:
        self._need("(", "op")
        self._need(")", "op")
        return self._function_body(name)

    def _function_body(self, name: str) -> Function:
        self._lines()
        if self._next.text not in ("{", "(", "[[", "if", "for", "while", "until", "case", "select"):
            raise self._fail()
        return Function(name, self._command())

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
        if self._tokens[self._at - 1].text == "else":
            other = self._body("fi")
            self._take()
        return If(tuple(branches), other)

    def _while(self) -> Loop:
        token = self._take()
        condition = self._body("do")
        return Loop("", None, condition, self._loop_body(), token.line, token.text == "until")

    def _for(self) -> Loop:
        line = self._take().line
        if self._next.kind == "arith":
            names = re.findall(r"[A-Za-z_]\w*", self._take().text)
            self.skip_separators()
            return Loop(names[0] if names else "", None, (), self._loop_body(), line)
        name, words = self._take().text, None
        self._lines()
        if self._is("in", kind="word"):
            self._take()
            found = []
            while self._next.kind == "word":
                found.append(self._take())
            words = tuple(found)
        self.skip_separators()
        return Loop(name, words, (), self._loop_body(), line)

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
        self._lines()
        self._need("in")
        self._lines()
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
            self._lines()
        self._take()
        return Case(word, tuple(branches))

    def _test(self) -> Test:
        line = self._take().line
        words: list[Token] = []
        while not self._is("]]", kind="word"):
            if self._next.kind in ("nl", "end"):
                raise self._fail()
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
