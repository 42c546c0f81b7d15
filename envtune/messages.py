"""Texts for people: a message with fields, rendered in the user's language as late as possible.

English is written in the code and is the key of the translation. The Chinese is in locale/zh/LC_MESSAGES/envtune.po, a
standard gettext catalog; `make messages` collects new messages and compiles it. English adds nothing to the start-up
time.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Callable, Iterable

LANGUAGES = ("en", "zh")


class Text:
    """A text in either language; `to(lang)` renders it."""

    __slots__ = ()

    def to(self, lang: str) -> str:
        """Return the text in `lang` (`en` or `zh`)."""
        raise NotImplementedError

    @property
    def en(self) -> str:
        """Return the English text."""
        return self.to("en")

    @property
    def zh(self) -> str:
        """Return the Chinese text."""
        return self.to("zh")

    def __str__(self) -> str:
        return self.en

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Text) and self.en == other.en and self.zh == other.zh

    def __hash__(self) -> int:
        return hash(self.en)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.en!r})"


class Message(Text):
    """A sentence of envtune: a template in the form of `str.format`, and its fields, which may be texts themselves."""

    __slots__ = ("context", "fields", "template")

    def __init__(self, template: str, /, **fields: Any) -> None:
        self.template, self.fields, self.context = template, fields, ""

    def to(self, lang: str) -> str:
        """Return the sentence in `lang`, with its fields filled in."""
        template = self.template if lang == "en" else _translated(self.template, self.context)
        if not self.fields:
            return template
        return template.format(**{k: v.to(lang) if isinstance(v, Text) else v for k, v in self.fields.items()})


class Literal(Text):
    """What reads the same in both languages: a value, a path, a command."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def to(self, lang: str) -> str:
        """Return the text itself."""
        return self.text


class Bilingual(Text):
    """A text that includes its translation, like those in the catalog."""

    __slots__ = ("_en", "_zh")

    def __init__(self, en: str, zh: str) -> None:
        self._en, self._zh = en, zh

    def to(self, lang: str) -> str:
        """Return the text in `lang`."""
        return self._zh if lang == "zh" else self._en


class Joined(Text):
    """Several texts, one after the other."""

    __slots__ = ("parts", "separator")

    def __init__(self, parts: Iterable[Text | str], separator: Text | str) -> None:
        self.parts, self.separator = tuple(parts), separator

    def to(self, lang: str) -> str:
        """Return the parts in `lang`, joined by the separator of that language."""
        separator = self.separator.to(lang) if isinstance(self.separator, Text) else self.separator
        return separator.join(part.to(lang) if isinstance(part, Text) else part for part in self.parts)


def N_(template: str) -> str:  # gettext's name for it
    """Return the template itself; marks one that becomes a message later, for the tool that collects messages."""
    return template


def in_context(context: str, template: str, /, **fields: Any) -> Message:
    """Return a message whose English text is translated differently elsewhere; `context` distinguishes them."""
    message = Message(template, **fields)
    message.context = context
    return message


def plural(one: str, many: str, count: int, /, **fields: Any) -> Message:
    """Return `one` for a count of 1, else `many`; the count is the field `count`."""
    return Message(one if count == 1 else many, count=count, **fields)


def enumerated(parts: Iterable[Text | str]) -> Joined:
    """Return a list of names: `a, b` (with the enumeration comma in Chinese)."""
    return Joined(parts, in_context("between names", ", "))


def listed(parts: Iterable[Text | str]) -> Joined:
    """Return a list of phrases: `a, b` (with a full-width comma in Chinese)."""
    return Joined(parts, Message(", "))


def clauses(parts: Iterable[Text | str]) -> Joined:
    """Return a list of clauses: `a; b` (with a full-width semicolon in Chinese)."""
    return Joined(parts, Message("; "))


def alternatives(parts: Iterable[Text | str]) -> Text:
    """Return a list of alternatives: `a, b or c`."""
    named: list[Text] = [part if isinstance(part, Text) else Literal(part) for part in parts]
    if len(named) < 2:
        return enumerated(named)
    return Message("{first} or {last}", first=enumerated(named[:-1]), last=named[-1])


def nearest(word: str, known: Iterable[str]) -> list[str]:
    """Return at most three known names similar to `word`, the best first, ignoring case.

    For an id that does not exist these are ids with the same letters, first the one
    with the same number; for a prefix or abbreviation of a name (`md` for
    markdown), that name.
    """
    import difflib
    import re

    by_lower, low = {name.lower(): name for name in known}, word.lower()
    letters = re.fullmatch("([a-z]+)0*([0-9]+)", low)
    alike = [name for name in by_lower if letters and re.fullmatch(f"{letters[1]}[0-9]+", name)]
    same = [name for name in alike if letters and re.fullmatch(f"{letters[1]}0*{letters[2]}", name)]
    close = difflib.get_close_matches(low, alike or by_lower, 3, 0.0 if alike else 0.6)
    found = list(dict.fromkeys([*same, *close]))[:3]
    if not found and len(low) > 1:
        form = re.compile(".*".join(map(re.escape, low)) if len(low) < 4 else re.escape(low))
        found = sorted(filter(form.match, by_lower), key=len)[:3]
    return [by_lower[name] for name in found]


@cache
def _lookup() -> Callable[[str], str]:
    import gettext
    import io
    import pkgutil

    data = pkgutil.get_data("envtune", "locale/zh/LC_MESSAGES/envtune.mo")
    assert data is not None  # package data: the loader of a checkout, wheel or zipapp has it
    return gettext.GNUTranslations(io.BytesIO(data)).gettext


def _translated(template: str, context: str) -> str:
    key = f"{context}\x04{template}" if context else template
    found = _lookup()(key)
    return template if found == key else found
