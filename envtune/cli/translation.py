"""Help and usage errors of typer in another language than English; imported only where one is wanted.

typer prints finished English sentences without codes, so the templates of those that `envtune` can meet stand here and
are recognized by their words. What is not recognized stays English.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Iterable, Iterator, Mapping, Optional, Union

import typer
from typer import core

from envtune.messages import N_, Message, Text, enumerated
from envtune.report.layout import display_width, indent, pad

# Those with more fields first: a shorter one would take them all into its last field.
_TEMPLATES = (
    N_("No such option: {option} (Possible options: {names})"),
    N_("No such option: {option} Did you mean {names}?"),
    N_("No such option: {option}"),
    N_("No such command '{name}'. Did you mean {names}?"),
    N_("No such command '{name}'."),
    N_("Missing argument {name}."),
    N_("Missing option {name}."),
    N_("Got unexpected extra argument(s) ({words})"),
    N_("Got unexpected extra argument ({words})"),
    N_("Got unexpected extra arguments ({words})"),
    N_("Option '{option}' requires an argument."),
    N_("Option '{option}' does not take a value."),
    N_("Option '{option}' requires {count} arguments."),
    N_("Invalid value for {name}: {problem}"),
    N_("Invalid value: {problem}"),
    N_("Missing command."),
    N_("'{value}' is not a valid integer."),
    N_("'{value}' is not a valid int."),
    N_("'{value}' is not a valid float."),
    N_("{value} is not in the range {range}."),
    N_("Show this message and exit."),
    N_("Install completion for the current shell."),
    N_("Show completion for the current shell, to copy it or customize the installation."),
    N_("Install completion for the specified shell."),
    N_("Show completion for the specified shell, to copy it or customize the installation."),
    N_("Arguments"),
    N_("Options"),
    N_("Commands"),
    N_("default: {default}"),
    N_("required"),
    N_("Aborted!"),
)
_PLACES = (N_("[OPTIONS]"), N_("COMMAND [ARGS]..."))  # in the line of a usage
_WHOLE = 40  # columns of what stands in brackets and is not broken
_UNWANTED_BLANK = re.compile("(?<=[\u3000-\uffef]) (?=[\u3000-\uffef])|(?<=[\u3001-\u3011\uff00-\uff1f]) ")
_Formatter: Any = typer.Context.formatter_class


def set_language(group: Any, lang: str) -> None:
    """Make typer print the help of this group, and what it adds to that of its commands, in `lang`."""
    translate_command(group, lang)
    # typer marks some words of its own for gettext, whose catalogs would have to be files; ours may be in a zip file.
    vars(core)["_"] = lambda message: Message(message).to(lang)


def translate_command(command: Any, lang: str) -> None:
    """Make a command print its help in `lang`."""
    command.context_class = _context_class(lang)
    for parameter in command.params:
        if getattr(parameter, "help", None):
            parameter.help = Message(parameter.help).to(lang)


def translate_error(error: Any, lang: str) -> None:
    """Make a usage error of typer print itself in `lang`, after the usage of its command and as our own errors do."""
    error.show = lambda file=None: typer.echo(_error_text(error, lang), err=True, file=file)


def _error_text(error: Any, lang: str) -> str:
    text = f"envtune: {translated(error.format_message(), lang)}"
    if error.ctx is None:
        return text
    option = error.ctx.help_option_names[0]
    hint = Message("Try '{command} {option}' for help.", command=error.ctx.command_path, option=option)
    return f"{error.ctx.get_usage()}\n{hint.to(lang)}\n\n{text}"


def translated(text: str, lang: str) -> str:
    """Return a sentence of typer in `lang`."""
    for template, pattern in _patterns().items():
        match = pattern.fullmatch(text)
        if match is not None:
            fields = {name: _field(name, value, lang) for name, value in match.groupdict().items()}
            return Message(template, **fields).to(lang)
    return text


def _field(name: str, value: str, lang: str) -> Union[str, Text]:
    """Return a field of a sentence: names in a row have the punctuation of the language between them."""
    return enumerated(value.split(", ")) if name == "names" else translated(value, lang)


@cache
def _patterns() -> Mapping[str, re.Pattern[str]]:
    return {
        template: re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.+)", re.escape(template)), re.DOTALL)
        for template in _TEMPLATES
    }


def _extra(text: str) -> str:
    """Return the help of an option with what typer adds in brackets in the punctuation of Chinese."""
    return re.sub(r"\[[^\[\]]*\]$", lambda found: found[0].replace("; ", Message("; ").to("zh")), text)


def _paragraphs(text: str, width: int, margin: str) -> Iterator[str]:
    """Yield the lines of a help text, broken by columns; those of a marked paragraph stay as they are."""
    for number, part in enumerate(text.split("\n\n")):
        kept = part.startswith("\b\n")
        lines = part[2:].split("\n") if kept else indent(_joined(part), width, margin, margin, _WHOLE)
        yield "\n" * bool(number)
        yield from (f"{margin if kept else ''}{line}".rstrip() + "\n" for line in lines)


def _joined(text: str) -> str:
    """Return the lines of a paragraph as one; words of Chinese have no blank between them."""
    return _UNWANTED_BLANK.sub("", " ".join(text.split()))


def usage(args: str, lang: str) -> str:
    """Return the line of a usage with its general words in `lang`."""
    for words in _PLACES:
        args = args.replace(words, Message(words).to(lang))
    return args


@cache
def _context_class(lang: str) -> type[Any]:
    if lang == "en":
        return typer.Context

    class Formatter(_Formatter):  # type: ignore[misc]
        """Breaks lines by the columns that a text takes on a terminal, where a Chinese character takes two."""

        def write_usage(self, prog: str, args: str = "", prefix: Optional[str] = None) -> None:
            super().write_usage(prog, usage(args, lang), Message("Usage: ").to(lang) if prefix is None else prefix)

        def write_heading(self, heading: str) -> None:
            self.write(Message("{heading}:", heading=translated(heading, lang)).to(lang) + "\n")

        def write_text(self, text: str) -> None:
            self.write("".join(_paragraphs(text, self.width, " " * self.current_indent)))

        def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
            rows = list(rows)
            column = min(max(display_width(first) for first, _ in rows), col_max) + col_spacing
            margin = " " * self.current_indent
            for first, second in rows:
                start = margin + pad(first, column)
                if display_width(first) > column - col_spacing:
                    self.write(f"{margin}{first}\n")
                    start = margin + " " * column
                lines = indent(translated(_extra(second), lang), self.width, start, margin + " " * column, _WHOLE)
                self.write("".join(f"{line.rstrip()}\n" for line in lines))

    return type("Context", (typer.Context,), {"formatter_class": Formatter})
