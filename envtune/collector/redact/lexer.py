"""Split a shell script into the words of its commands, with the position of every character of a word in the script.

Enough of the grammar to know where a word ends and how it is quoted: quotes, expansions, substitutions, arrays,
comments and here-documents. One pass; open constructs are kept on a stack, so that nesting needs no recursion.
"""

import bisect
import re
from typing import Any, Callable, Dict, List, Optional, Tuple

from .values import OPAQUE

BARE, SINGLE, DOUBLE, ANSI, ESCAPED, FILLED_IN = "bare", "single", "double", "ansi", "escaped", "filled in"

_RUN = re.compile(r"[^\s\\'\"`$;&|<>(){}#]+")
_DOUBLE_RUN = re.compile(r"[^\"\\$`]+")
_BRACE_RUN = re.compile(r"[^\s\\'\"`$}]+")
_ANSI_QUOTE = re.compile(r"\$'([^'\\]*(?:\\.[^'\\]*)*)'?", re.S)
_PARAMETER = re.compile(r"\$(?:[A-Za-z_]\w*|[0-9@*#?$!-])")
_BRACE = re.compile(r"\$\{[!#]?([A-Za-z_]\w*|[0-9]+|[@*#?$!-])?(?:\[[^\]}\s]{0,80}\])?(:?[-=+?])?")
_ARRAY = re.compile(r"([^\W\d]\w*)(?:\[[^\]]{0,80}\])?\+?=$")
_HEREDOC_WORD = re.compile(r"[ \t]*((?:'[^'\n]*'|\"[^\"\n]*\"|\\.|[^\s;&|<>()'\"\\])+)")


class Segment:
    """A piece of a word: `start` to `end` in the word, `raw_start` to `raw_end` in the script, and how it is quoted.

    `quotes` are the positions of the quotes around it, shared by the pieces between the same quotes; None without any.
    """

    __slots__ = ("end", "quotes", "raw_end", "raw_start", "start", "style")

    def __init__(self, start: int, end: int, raw: Tuple[int, int], style: str, quotes: Optional[List[int]]) -> None:
        self.start, self.end, self.style, self.quotes = start, end, style, quotes
        self.raw_start, self.raw_end = raw


class Word:
    """A word of a command. `text` has OPAQUE for each expansion; `defaults` are the spans of `x` in `${NAME:-x}`."""

    def __init__(self) -> None:
        self.parts: List[str] = []
        self.length = 0
        self.segments: List[Segment] = []
        self.defaults: List[Tuple[str, int, int]] = []
        self.begun = False
        self.array = ""  # the name of the array that it is an element of
        self.value_of = ""  # the name of the variable that receives its command's output: NAME=$(...)
        self.is_input = False  # <<< word

    @property
    def text(self) -> str:
        """Return the role of the word in the command."""
        return "".join(self.parts)

    def add(self, text: str, raw: Tuple[int, int], style: str, quotes: Optional[List[int]] = None) -> None:
        """Append a piece."""
        self.begun = True
        if text:
            self.segments.append(Segment(self.length, self.length + len(text), raw, style, quotes))
            self.parts.append(text)
            self.length += len(text)


class _Frame:
    """An open construct: a list of commands, double quotes, an expansion in braces, an array, arithmetic."""

    def __init__(self, kind: str, end: str = "", word: Optional[Word] = None) -> None:
        self.kind, self.end = kind, end
        self.words: List[Word] = []
        self.word = Word() if word is None else word
        self.quotes: Optional[List[int]] = None
        self.array, self.value_of = "", ""
        self.parameter: Tuple[str, int] = ("", -1)
        self.depth = 0


def _commands_of(word: Word, end: str) -> _Frame:
    """Return the frame of a command substitution in a word."""
    opened = _Frame("commands", end)
    if word.length < 128:
        name = _ARRAY.match(word.text)
        opened.value_of = "" if name is None else name.group(1)
    return opened


class Lexer:
    """Calls `on_command` with the words of every command, and the operator it ends with, in the order of their ends."""

    def __init__(self, text: str, on_command: Callable[[List[Word], str], None]) -> None:
        self.text, self.at, self.on_command = text, 0, on_command
        self.frames = [_Frame("commands")]
        self.heredocs: List[Tuple[str, bool]] = []
        self.backquotes = 0
        self.input_next = False
        self._line_places: Optional[Dict[str, List[Tuple[int, int]]]] = None

    def run(self) -> None:
        """Read the whole script."""
        steps: Dict[str, Callable[[_Frame], None]] = {
            "commands": self._in_commands,
            "array": self._in_commands,
            "double": self._in_double,
            "brace": self._in_brace,
            "arithmetic": self._in_arithmetic,
        }
        while self.at < len(self.text):
            frame = self.frames[-1]
            steps[frame.kind](frame)
        while self.frames:
            self._close()

    # ------------------------------------------------------------------ the kinds of frames

    def _in_commands(self, frame: _Frame) -> None:
        text, at = self.text, self.at
        run = _RUN.match(text, at)
        if run is not None:
            frame.word.add(run.group(), run.span(), BARE)
            self.at = run.end()
            return
        c = text[at]
        if c in "\\'\"`$":
            self._quoted(frame, c)
        elif c == "#" and not frame.word.begun:
            end = text.find("\n", at)
            self.at = len(text) if end < 0 else end
        elif c in "{}#":
            frame.word.add(c, (at, at + 1), BARE)
            self.at = at + 1
        elif c in "<>":
            self._redirection(frame)
        elif c.isspace() and c != "\n":
            self._end_word()
            self.at = at + 1
        else:
            self._operator(frame, c)

    def _in_double(self, frame: _Frame) -> None:
        run = _DOUBLE_RUN.match(self.text, self.at)
        if run is not None:
            frame.word.add(run.group(), run.span(), DOUBLE, frame.quotes)
            self.at = run.end()
            return
        c = self.text[self.at]
        if c == '"':
            self.at += 1
            if frame.quotes is not None:
                frame.quotes[1] = self.at
            self.frames.pop()
        else:
            self._quoted(frame, c)

    def _in_brace(self, frame: _Frame) -> None:
        run = _BRACE_RUN.match(self.text, self.at)
        style = BARE if frame.quotes is None else DOUBLE
        if run is not None or self.text[self.at].isspace() or (self.text[self.at] == "'" and style == DOUBLE):
            end = self.at + 1 if run is None else run.end()
            literal = frame.parameter[1] >= 0
            frame.word.add(
                self.text[self.at : end] if literal else OPAQUE,
                (self.at, end),
                style if literal else FILLED_IN,
                frame.quotes,
            )
            self.at = end
        elif self.text[self.at] == "}":
            name, start = frame.parameter
            if start >= 0:
                frame.word.defaults.append((name, start, frame.word.length))
            frame.word.add(OPAQUE, (self.at, self.at + 1), FILLED_IN, frame.quotes)
            self.at += 1
            self.frames.pop()
        else:
            self._quoted(frame, self.text[self.at])

    def _in_arithmetic(self, frame: _Frame) -> None:
        c = self.text[self.at]
        if c in "\"'":
            self.at += 1
        elif c in "$`":
            self._quoted(frame, c)
        else:
            frame.depth += {"(": 1, ")": -1}.get(c, 0)
            self.at += 1
            if frame.depth == 0:
                self.frames.pop()

    # ------------------------------------------------------------------ quotes and expansions

    def _quoted(self, frame: _Frame, c: str) -> None:
        """Read what begins with a backslash, a quote, a dollar sign or a backquote."""
        if c == "\\":
            self._escape(frame)
        elif c == "'":
            end = self.text.find("'", self.at + 1)
            end = len(self.text) if end < 0 else end
            quotes = [self.at, min(end + 1, len(self.text))]
            frame.word.add(self.text[self.at + 1 : end], (self.at + 1, end), SINGLE, quotes)
            self.at = quotes[1]
        elif c == '"':
            self._open_double(frame, self.at, 1)
        elif c == "`":
            self._backquote(frame)
        else:
            self._expansion(frame)

    def _escape(self, frame: _Frame) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        quotes = frame.quotes
        if following == "\n":
            pass
        elif frame.kind == "double" and following not in ('"', "\\", "$", "`"):
            frame.word.add("\\", (self.at, self.at + 1), DOUBLE, quotes)
            self.at += 1
            return
        else:
            frame.word.add(following, (self.at, self.at + 2), ESCAPED, quotes)
        self.at += 2

    def _open_double(self, frame: _Frame, start: int, length: int) -> None:
        opened = _Frame("double", word=frame.word)
        opened.quotes = [start, len(self.text)]
        frame.word.begun = True
        self.frames.append(opened)
        self.at = start + length

    def _backquote(self, frame: _Frame) -> None:
        self.at += 1
        if self.backquotes and any(opened.end == "`" for opened in self.frames[-8:]):
            while self.frames[-1].end != "`":
                self._close()
            self._close()
            self.backquotes -= 1
            return
        opened = _commands_of(frame.word, "`")
        frame.word.add(OPAQUE, (self.at - 1, self.at), FILLED_IN, frame.quotes)
        self.frames.append(opened)
        self.backquotes += 1

    def _expansion(self, frame: _Frame) -> None:
        text, at = self.text, self.at
        two, word = text[at : at + 2], frame.word
        bare = frame.kind in ("commands", "array", "brace") and frame.quotes is None
        if two == "$'" and bare:
            found: Any = _ANSI_QUOTE.match(text, at)
            word.add(found.group(1), found.span(1), ANSI, [at, found.end()])
            self.at = found.end()
        elif two == '$"' and bare:
            self._open_double(frame, at, 2)
        elif two == "$(":
            arithmetic = text.startswith("$((", at)
            opened = _Frame("arithmetic", word=Word()) if arithmetic else _commands_of(word, ")")
            word.add(OPAQUE, (at, at + 2), FILLED_IN, frame.quotes)
            self.frames.append(opened)
            self.at = at + 1 if arithmetic else at + 2
        elif two == "${":
            self._open_brace(frame)
        else:
            parameter = _PARAMETER.match(text, at)
            end = at + 1 if parameter is None else parameter.end()
            style = BARE if frame.quotes is None else DOUBLE
            word.add("$" if parameter is None else OPAQUE, (at, end), FILLED_IN if parameter else style, frame.quotes)
            self.at = end

    def _open_brace(self, frame: _Frame) -> None:
        head: Any = _BRACE.match(self.text, self.at)
        opened = _Frame("brace", word=frame.word)
        opened.quotes = frame.quotes
        frame.word.add(OPAQUE, head.span(), FILLED_IN, frame.quotes)
        if head.group(2):
            is_default = head.group(2)[-1] in "-="  # not `${NAME:+x}`, `${NAME:?x}`
            opened.parameter = (head.group(1) or "" if is_default else "", frame.word.length)
        self.frames.append(opened)
        self.at = head.end()

    # ------------------------------------------------------------------ operators

    def _operator(self, frame: _Frame, c: str) -> None:
        """Read one of newline ; & | ( )."""
        self.at += 1
        if c == "(":
            array = _ARRAY.match(frame.word.text[-128:]) if frame.word.begun and frame.word.length < 128 else None
            if array is not None:
                opened = _Frame("array", ")")
                opened.array = array.group(1)
                frame.word.add(OPAQUE, (self.at - 1, self.at), FILLED_IN)
                self.frames.append(opened)
                return
            self._end_word()
            if self.text.startswith("(", self.at) and not frame.words:
                opened = _Frame("arithmetic", word=Word())
                opened.depth = 1
                self.frames.append(opened)
            else:
                self.frames.append(_Frame("commands", ")"))
        elif c == ")":
            self._end_command(c)
            if frame.end == ")":
                self.frames.pop()
        elif frame.kind == "array":
            self._end_word()
        else:
            self._end_command(c)
        if c == "\n" and self.heredocs:
            self._skip_heredocs()

    def _redirection(self, frame: _Frame) -> None:
        self._end_word()
        text, at = self.text, self.at
        if text.startswith("<<<", at):
            self.at, self.input_next = at + 3, True
        elif text.startswith("<<", at) and frame.kind == "commands":
            strips = text.startswith("-", at + 2)
            word = _HEREDOC_WORD.match(text, at + 2 + strips)
            self.at = at + 2 + strips if word is None else word.end()
            if word is not None:
                self.heredocs.append((re.sub(r"['\"\\]", "", word.group(1)), strips))
        else:
            self.at = at + 2 if text[at + 1 : at + 2] in ("&", ">") else at + 1

    def _skip_heredocs(self) -> None:
        """Continue after the here-documents that this line began."""
        for end_word, strips in self.heredocs:
            places = self._lines().get(end_word, ())
            place = bisect.bisect_left(places, (self.at, 0))
            while place < len(places) and not strips and places[place][1]:  # begins with tabs
                place += 1
            if place < len(places):  # without an end it may not be one at all
                self.at = min(places[place][0] + places[place][1] + len(end_word) + 1, len(self.text))
        self.heredocs = []

    def _lines(self) -> Dict[str, List[Tuple[int, int]]]:
        """Return {short line, stripped of leading tabs: its positions and numbers of tabs}."""
        if self._line_places is None:
            self._line_places = {}
            start = 0
            for line in self.text.split("\n"):
                word = line.lstrip("\t")
                if len(word) < 256:
                    self._line_places.setdefault(word, []).append((start, len(line) - len(word)))
                start += len(line) + 1
        return self._line_places

    def _end_word(self) -> None:
        frame = self.frames[-1]
        if frame.kind not in ("commands", "array"):
            return
        if frame.word.begun:
            frame.word.array, frame.word.value_of = frame.array, frame.value_of
            frame.word.is_input, self.input_next = self.input_next, False
            frame.words.append(frame.word)
            frame.word = Word()

    def _end_command(self, operator: str) -> None:
        frame = self.frames[-1]
        self._end_word()
        if frame.kind in ("commands", "array") and (frame.words or operator == "|"):
            self.on_command(frame.words, operator)
            frame.words = []

    def _close(self) -> None:
        """End the innermost frame, whatever it is."""
        self._end_command("")
        self.frames.pop()
