"""Redact a shell script so that a shell, and whoever parses it like one, still finds the same commands in it."""

import re
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from .lexer import ANSI, BARE, ESCAPED, FILLED_IN, SINGLE, Lexer, Segment, Word
from .names import PLAIN, SUSPECT, secret_grade
from .text import merged, secret_spans
from .values import OPAQUE, REDACTED, keeps_graded
from .words import reads_secret, word_spans

WITHIN = REDACTED.strip("<>")  # inside a word, where the brackets could be read as redirections
Change = Tuple[int, int, str]


def redact_script(text: str) -> str:
    """Return a script or env file without secrets, so that a shell still parses it the same way.

    A value becomes a quoted word; inside a word it becomes "redacted" without quotes. Expansions and substitutions in
    it stay, and so does the number of lines.
    """
    text = _with_changes(text, _Redactor().changes(text))
    return redact_lines(text, in_shell=True)


def redact_lines(text: str, in_shell: bool = False) -> str:
    """Return a file without secrets: configuration, code; comments and here-documents of a script (`in_shell`)."""
    changes = []
    for start, end in secret_spans(text, in_shell):
        quotes = (text[start - 1 : start], text[end : end + 1])
        quoted = quotes[0] == quotes[1] and quotes[0] in ("'", '"')
        changes.append((start, end, REDACTED if quoted else WITHIN))
    return _with_changes(text, changes)


def _with_changes(text: str, changes: Sequence[Change]) -> str:
    kept, at = [], 0
    for start, end, mark in sorted(changes):
        if start < at:
            continue
        lines = "\n" * text.count("\n", start, end)
        kept += [text[at:start], mark[:-1] + lines + '"' if mark[-1:] == '"' else mark + lines]
        at = end
    return "".join(kept) + text[at:]


class _Redactor:
    """Collects the changes to a script, command by command."""

    def __init__(self) -> None:
        self._changes: List[Change] = []
        self._text = ""
        self._printed: Sequence[Word] = ()  # the words of `echo` before a pipe

    def changes(self, text: str) -> List[Change]:
        """Return what to replace in the script."""
        self._text = text
        Lexer(text, self._command).run()
        return self._changes

    def _command(self, words: List[Word], operator: str) -> None:
        texts = [word.text for word in words]
        if words and words[0].array:
            self._array(words, texts)
        spans = list(word_spans(texts))
        spans += [(n, a, b) for n, word in enumerate(words) for a, b in _defaults(word, texts[n])]
        grade = secret_grade(words[0].value_of) if words else PLAIN
        if grade > PLAIN and texts[0] in ("echo", "printf"):
            printed = [n for n, text in enumerate(texts) if n and not _is_format(text)]
            spans += [(n, 0, len(texts[n])) for n in printed if len(printed) > 1 or not keeps_graded(grade, texts[n])]
        spans += self._assigned(words, texts)
        if reads_secret(texts):
            spans += [(n, 0, len(texts[n])) for n, word in enumerate(words) if word.is_input and texts[n]]
            for word in self._printed:
                self._replace(word, 0, word.length)
        by_word: List[List[Tuple[int, int]]] = [[] for _ in words]
        for n, start, end in spans:
            by_word[n].append((start, end))
        for word, places in zip(words, by_word):
            for start, end in merged(places):
                self._replace(word, start, end)
        prints = texts[:1] in (["echo"], ["printf"]) and operator == "|"
        self._printed = [word for word in words[1:] if not _is_format(word.text)] if prints else ()

    def _assigned(self, words: Sequence[Word], texts: Sequence[str]) -> Iterator[Tuple[int, int, int]]:
        """Yield the values that a command assigns to a variable, or compares with one."""
        inputs = [n for n, word in enumerate(words) if word.is_input]
        grades = _given(texts, inputs)
        if words and words[0].value_of:  # NAME=$(base64 -d <<< word)
            grades.update(dict.fromkeys(inputs, secret_grade(words[0].value_of)))
        for n in range(1, len(texts) - 1):
            if texts[n] in ("=", "==", "!="):
                grades[n + 1] = min(SUSPECT, secret_grade(self._parameter(words[n - 1])))
                grades[n - 1] = min(SUSPECT, secret_grade(self._parameter(words[n + 1])))
        for n, grade in grades.items():
            if not keeps_graded(grade, texts[n]) and not _is_format(texts[n]):
                yield n, 0, len(texts[n])

    def _parameter(self, word: Word) -> str:
        """Return the name of the variable whose value a word is; empty for any other word."""
        pieces = word.segments
        if not pieces or pieces[0].style != FILLED_IN:
            return ""
        return self._text[pieces[0].raw_start : pieces[0].raw_end].strip('${}"')

    def _array(self, words: Sequence[Word], texts: Sequence[str]) -> None:
        """Replace the elements of an array by its name."""
        grade = secret_grade(words[0].array)
        for word, text in zip(words, texts):
            key = re.match(r"\[[^\]]{0,80}\]=", text)
            start = 0 if key is None else key.end()
            if grade > PLAIN and not keeps_graded(grade, text[start:]):
                self._replace(word, start, len(text))

    def _replace(self, word: Word, start: int, end: int) -> None:
        pieces = [piece for piece in word.segments if piece.start < end and piece.end > start]
        whole = _whole(word, pieces, start, end)
        if whole is not None:
            self._changes.append((whole[0], whole[1], '"' + REDACTED + '"'))
            return
        before: Optional[Segment] = None
        for piece in pieces:
            if piece.style != FILLED_IN:
                self._changes.append(_piece_change(piece, start, end, before))
            before = piece


def _given(texts: Sequence[str], inputs: Sequence[int]) -> Dict[int, int]:
    """Return the grades of the words that `printf -v NAME`, `read NAME <<<` and `for NAME in` assign to a variable."""
    if texts[:2] == ["printf", "-v"] and len(texts) > 3:
        return dict.fromkeys(range(3, len(texts)), secret_grade(texts[2]))
    if texts[:1] == ["read"]:
        names = [text for n, text in enumerate(texts) if n and n not in inputs]
        return dict.fromkeys(inputs, max(map(secret_grade, names), default=PLAIN))
    if texts[:1] == ["for"] and texts[2:3] == ["in"]:
        return dict.fromkeys(range(3, len(texts)), secret_grade(texts[1]))
    return {}


def _is_format(text: str) -> bool:
    """Return whether a word of `echo` or `printf` is not printed."""
    return re.match(r"-|[^%]{0,80}%|[^\\]{0,80}\\n", text) is not None or not text.strip(OPAQUE)


def _defaults(word: Word, text: str) -> Iterator[Tuple[int, int]]:
    """Yield the positions of `x` in `${TOKEN:-x}`, if the parameter's name is that of a secret."""
    for name, start, end in word.defaults:
        if not keeps_graded(secret_grade(name), text[start:end]):
            yield start, end


def _whole(word: Word, pieces: Sequence[Segment], start: int, end: int) -> Optional[Tuple[int, int]]:
    """Return the position, quotes included, of a value that ends its word, if the quotes contain nothing else."""
    if not pieces or end < word.length or any(piece.style == FILLED_IN for piece in pieces):
        return None
    first, last = pieces[0], pieces[-1]
    others = [piece.quotes for piece in word.segments if piece.end <= start and piece.quotes is not None]
    if first.quotes is not None and (first.start < start or others[-1:] == [first.quotes]):
        return None
    begin = first.raw_start + max(0, start - first.start) if first.quotes is None else first.quotes[0]
    return begin, last.raw_end if last.quotes is None else last.quotes[1]


def _piece_change(piece: Segment, start: int, end: int, before: Optional[Segment]) -> Change:
    """Return the change to a piece of a word whose other pieces or quotes stay."""
    first, last = piece.raw_start, piece.raw_end
    if piece.style != ESCAPED:
        first += max(0, start - piece.start)
        last -= 0 if piece.style == ANSI else max(0, piece.end - end)
    if before is not None and before.style != FILLED_IN and before.raw_end == piece.raw_start:
        return first, last, ""  # the piece before it has the mark
    if before is not None and before.style == FILLED_IN and piece.style not in (SINGLE, ANSI):
        # `$A-b`: a letter would lengthen the name of the variable
        return first, last, '"' + REDACTED + '"' if piece.style == BARE and piece.quotes is None else REDACTED
    return first, last, WITHIN
