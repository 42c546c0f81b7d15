"""What may be said of a problem in a few lines: the title with all that was found, less of it, or one of the two."""

from __future__ import annotations

import re
from typing import Iterable, Iterator, Optional

from envtune.audit.subjects import is_plain, subject_text
from envtune.messages import Joined, Literal, Message, Text, clauses, enumerated
from envtune.records import NamedTuple, expression
from envtune.report.layout import beginnings, printable, short_paths, without_remarks
from envtune.report.problems import Problem, Statement, adds_nothing, statements
from envtune.report.words import few_subjects

PHRASE = 4  # words of what was found that say without a title what is wrong
_ROW_OF_NAMES = expression("[^\\s,;:\u3001\uff0c\uff1b\uff1a]+(?:(?:, |\u3001)[^\\s,;:\u3001\uff0c\uff1b\uff1a]+){3,}$")
_BETWEEN_NAMES = expression(", |\u3001")
TITLE = "title"  # the key of the wording that says nothing else
FACT = "system.fact"  # the probe of golden values: what differs is the name of a fact


class Wording(NamedTuple):
    """One extent of what may be said, the same in every language; `texts` differ in length only, the longest first."""

    key: str
    texts: tuple[str, ...]


def wordings(problem: Problem, lang: str) -> tuple[Wording, ...]:
    """Return what may be said of a problem, what says most first and its title last."""
    return tuple(_Sayings(problem, lang).all())


class _Sayings:
    """The wordings of one problem in one language."""

    def __init__(self, problem: Problem, lang: str) -> None:
        self.lang, self.title, self.findings = lang, problem.check.title, problem.findings
        self.rows = statements(self.findings, lang)
        self.by_policy = problem.check.by_policy
        self.is_fact = problem.check.probe == FACT
        if self.is_fact:
            self.rows = tuple(self._with_name(row) for row in self.rows)
        in_english = statements(self.findings, "en")
        self.is_phrase = all(len(row.actual.split()) >= PHRASE for row in in_english) and not self.by_policy
        self.stands_alone = self.is_phrase or self.by_policy or all(map(_is_value_of_a_name, in_english))

    def all(self) -> Iterator[Wording]:
        """Yield the wordings.

        What is expected is a remark; where what was found says by itself what is wrong, it is not needed. What was
        found of a named subject says more than the title, where there is room for one of them only.
        """
        found = self._found(self.title)
        if found and not all(adds_nothing(self.title, finding) for finding in self.findings):
            yield from self._extents(self.title, found)
            if not self.is_phrase:  # a bare value says little without the title
                yield from self._with_subjects()
            if self.stands_alone:
                yield from self._extents(None, self._found(None))
        yield from self._with_subjects()
        yield Wording(TITLE, (self._to(self.title),))

    def _with_subjects(self) -> Iterator[Wording]:
        """Yield the title with what it is about, in words that it does not have."""
        if all(row.subject and row.subject not in self._to(self.title) for row in self.rows):
            subjects = self._to(enumerated(few_subjects(row.subject) for row in self.rows))
            yield Wording("with subjects", (self._titled(self.title, subjects),))

    def _extents(self, title: Optional[Text], found: str) -> Iterator[Wording]:
        kind = "found" if title is None else "titled"
        if not self.is_phrase:
            exact = self._titled(title, self._found(title, expected=True))
            yield Wording(f"{kind} with what is expected", (exact, short_paths(exact)))
        if not self.by_policy or title is None:
            yield self._wording(kind, [self._titled(title, found)])
        for count in range(len(self.rows) - 1, 0, -1):
            for rest in (True, False):  # each with its own key, so that both languages name the same subjects
                part = self._found(title, self.by_policy, count, rest)
                yield self._wording(f"{kind} {count} {rest}", [self._titled(title, part)])
        if len(self.rows) == 1:
            parts = [
                self._to(Message("{found}; and {count} more", found=one, count=count))
                for count, one in enumerate(beginnings(found))
                if count
            ]
            yield self._wording(f"{kind} in part", [self._titled(title, part) for part in parts])
            few = [
                shorter for part in dict.fromkeys((found, *versions([found]))) for shorter in self._few_of_many(part)
            ]
            yield self._wording(f"{kind} beginning", [self._titled(title, part) for part in few])

    def _few_of_many(self, found: str) -> Iterator[str]:
        """Yield what was found with fewer of the names that it ends with: `missing: attrs, cffi and 7 more`."""
        row = _ROW_OF_NAMES.search(found)
        if row is None:
            return
        names = _BETWEEN_NAMES.split(row[0])
        for count in range(len(names) - 1, 1, -1):
            few = enumerated(Literal(name) for name in names[:count])
            yield found[: row.start()] + self._to(
                Message("{names} and {count} more", names=few, count=len(names) - count)
            )

    def _wording(self, key: str, texts: Iterable[str]) -> Wording:
        if self.by_policy:  # what is expected is no remark there
            return Wording(key, tuple(version for text in texts for version in (text, short_paths(text))))
        return Wording(key, tuple(versions(texts)))

    def _to(self, text: Text) -> str:
        return printable(text.to(self.lang))

    def _titled(self, title: Optional[Text], found: str) -> str:
        return found if title is None else self._to(Message("{title}: {found}", title=title, found=found))

    def _with_name(self, row: Statement) -> Statement:
        """Return what was found with the fact's name before it, which is more than the title says."""
        return row._replace(actual=f"{printable(subject_text(row.subject).to(self.lang))} {row.actual}")

    def _found(
        self, title: Optional[Text], expected: bool = False, count: Optional[int] = None, rest: bool = False
    ) -> str:
        """Return what was found about each subject, or the first `count`; one that the words name is not named again.

        `title` stands before it, if there is one. With `rest` the other subjects are named, else counted.
        """
        said: Text = clauses(
            part for part in (self._part(row, title, expected) for row in self.rows[:count]) if part.en
        )
        if count is not None:
            others = self.rows[count:]
            if rest and all(row.subject for row in others):
                names: Text = enumerated(few_subjects(row.subject) for row in others)
                said = Message("{found}; also {subjects}", found=said, subjects=names)
            else:
                said = Message("{found}; and {count} more", found=said, count=len(others))
        return self._to(said)

    def _part(self, row: Statement, title: Optional[Text], expected: bool) -> Text:
        text: Text = Literal(printable(row.actual))
        if expected and row.expected:
            text = Message("{actual} (expected {expected})", actual=text, expected=printable(row.expected))
        begun = row.beginning
        if begun is not None:
            return Joined((enumerated(printable(begun).split(", ")), text), "")
        if not self._is_named(row, title):
            return Message("{subject}: {found}", subject=few_subjects(row.subject), found=text)
        return text

    def _is_named(self, row: Statement, title: Optional[Text]) -> bool:
        """Return whether the title or what was found names the subject, so that it need not stand before it."""
        if not row.subject or (len(self.rows) == 1 and self._is_titled(row, title)):
            return True
        name = subject_text(printable(row.subject)).to(self.lang)
        return re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w./-])", row.actual, re.ASCII) is not None

    def _is_titled(self, row: Statement, title: Optional[Text]) -> bool:
        if is_plain(row.subject):
            return title is not None or not self.by_policy
        names = (row.subject, subject_text(row.subject).to(self.lang))
        return title is not None and any(name in self._to(title) for name in names)


def _is_value_of_a_name(row: Statement) -> bool:
    """Return whether a value says by its name what it is; that a path is wrong only the title says."""
    return bool(row.subject) and not is_plain(row.subject) and not row.actual.startswith("/")


def versions(texts: Iterable[str]) -> Iterator[str]:
    """Yield each text, then with long paths shortened, then without remarks."""
    for text in texts:
        short = short_paths(text)
        yield from (text, short, without_remarks(short))
