"""The command tree. A verb's module is imported when the verb is used, so that `check` does not pay for `snapshot`."""

from __future__ import annotations

import importlib
import sys
from contextlib import contextmanager
from typing import Any, Iterator, Mapping, Optional

import typer
from typer.core import TyperGroup

from envtune.cli import options
from envtune.cli.program.language import language_of
from envtune.errors import EnvtuneError
from envtune.messages import N_, Message, nearest

# verb -> module; the order is the order of --help
VERBS: Mapping[str, str] = {
    "check": "check",
    "diff": "hosts.diff",
    "fix": "fix",
    "undo": "undo",
    "resume": "program.resume",
    "history": "history",
    "snapshot": "snapshot",
    "collector": "collector",
    "scan": "verbs.scan",
    "diagnose": "diagnose",
    "npu": "verbs.npu",
    "profile": "verbs.profile",
    "observe": "verbs.observe",
    "bench": "verbs.bench",
    "fleet": "fleet",
    "run": "run",
    "hook": "hook",
    "env": "env",
    "explain": "explain",
    "list": "list_",
    "policy": "policy.command",
    "new": "site.new",
    "test-catalog": "site.test_catalog",
    "completion": "program.completion",
    "version": "program.version",
}
_USAGE_ERROR: Any = typer.BadParameter.__mro__[1]  # UsageError, which typer does not name
HELP = N_(
    """Checks whether an Ascend NPU host is ready for training, fixes what it safely can, and explains failed runs.

\b
Start with:
  envtune check                is this host ready for training?
  envtune diagnose train.log   why did this run fail?
  envtune fix                  what can be fixed here? (changes nothing)
"""
)
INDENTATION = 2  # columns by which typer indents the help of a verb
COMPLETION_VARIABLE = "_ENVTUNE_COMPLETE"


class LazyGroup(TyperGroup):
    """A group whose verbs are imported when asked for, and which says what is wrong in the user's language.

    `known` holds the values of parameters while a shell asks what completes a line.
    """

    known: Any = None
    verbs: Mapping[str, str] = VERBS

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **extra: Any) -> Any:
        """Return the context of the program, with help and usage errors in the user's language."""
        lang = language_of(args)
        if args and args[0] == "help":  # as of other programs: `envtune help check`
            args = [*args[1:], "--help"]
        for param in self.params:
            if param.name in ("install_completion", "show_completion"):
                param.callback = _completion
        self.help = Message(HELP).to(lang)
        if lang != "en" or "envtune.cli.translation" in sys.modules:
            from envtune.cli.translation import set_language

            set_language(self, lang)
        extra.setdefault("obj", lang)
        with _errors(lang):
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run the verb, report its errors in the user's language, and close what it left to be closed."""
        with _errors(ctx.obj), options.until_end:
            return super().invoke(ctx)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the verbs in the order of `--help`, without importing them."""
        return list(self.verbs)

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write the help with examples that fit the terminal."""
        with _fitted_help(self, formatter):
            super().format_help_text(ctx, formatter)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the verb that was named; the error for one that does not exist names those that come nearest."""
        try:
            return super().resolve_command(ctx, args)
        except _USAGE_ERROR as error:
            near = nearest(args[0], self.verbs)
            if near:
                names = ", ".join(f"'{name}'" for name in near)
                error.message = f"{error.message.rstrip('.')}. Did you mean {names}?"
            raise

    def get_command(self, ctx: Any, cmd_name: str) -> Optional[Any]:
        """Import a verb's module and return its command, translated; None when there is no such verb."""
        if cmd_name not in self.verbs:
            return None
        from envtune.cli.program.parameters import complete_parameters

        module = importlib.import_module(f"envtune.cli.{self.verbs[cmd_name]}")
        text = Message(module.HELP).to(ctx.obj)
        if hasattr(module, "VERBS"):
            return _with_help(self._group(cmd_name, text, module.VERBS, ctx.obj))
        verb = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        verb.command(cmd_name, help=text, context_settings=getattr(module, "CONTEXT", None))(module.command)
        command = typer.main.get_command(verb)
        complete_parameters(command)
        if self.known is not None:
            self.known.offer(command)
        if ctx.obj != "en":
            from envtune.cli.translation import translate_command

            translate_command(command, ctx.obj)
        return _with_help(command)

    def _group(self, name: str, text: str, verbs: Mapping[str, str], lang: str) -> Any:
        """Return a verb that has verbs of its own, with the options that all verbs have."""
        from envtune.cli.program.parameters import group_parameters

        settings = app.info.context_settings
        group = _Group(
            name=name, help=text, rich_markup_mode=None, invoke_without_command=True, context_settings=settings
        )
        group.params.extend(group_parameters())
        group.verbs, group.known = verbs, self.known
        if self.known is not None:
            self.known.add_verbs(verbs)
        if lang != "en":
            from envtune.cli.translation import translate_command

            translate_command(group, lang)
        return group


class _Group(LazyGroup):
    """A verb that has verbs of its own. Its language is that of the program."""

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **extra: Any) -> Any:
        """Return the context; without a verb, the help is printed."""
        context = TyperGroup.make_context(self, info_name, args, parent, **extra)
        self.callback = lambda: None if context.invoked_subcommand else typer.echo(context.get_help())
        return context

    def invoke(self, ctx: Any) -> Any:
        """Run the verb."""
        return TyperGroup.invoke(self, ctx)


def _with_help(command: Any) -> Any:
    """Return the command with a help that fits the terminal: a summary that is not cut, examples that do not wrap."""
    written = command.format_help_text

    def format_help_text(ctx: Any, formatter: Any) -> None:
        with _fitted_help(command, formatter):
            written(ctx, formatter)

    if not isinstance(command, LazyGroup):  # which has it
        command.format_help_text = format_help_text
    command.short_help = command.help.partition("\n\n")[0]
    return command


@contextmanager
def _fitted_help(command: Any, formatter: Any) -> Iterator[None]:
    """Give the command a help whose examples fit the width of the formatter."""
    from envtune.cli.program.examples import fitted

    command.help, before = fitted(command.help, formatter.width - INDENTATION), command.help
    try:
        yield
    finally:
        command.help = before


@contextmanager
def _errors(lang: str) -> Iterator[None]:
    """Report what envtune raises on purpose on stderr, and exit with 2; translate usage errors of typer.

    A defect passes: it is reported where the program ends.
    """
    try:
        yield
    except EnvtuneError as error:
        options.print_error(error.message, lang)
        raise typer.Exit(2) from None
    except _USAGE_ERROR as error:
        from envtune.trust.characters import visible

        error.message = visible(error.message)  # it quotes the words of the command line
        from envtune.cli.translation import translate_error

        translate_error(error, lang)
        raise
    except KeyboardInterrupt as interrupt:
        from envtune.cli.program.interrupt import report_interrupt

        report_interrupt(interrupt, lang)
        raise typer.Exit(options.INTERRUPTED) from None
    except (EOFError, BrokenPipeError) as error:  # which typer would end with 1, as if something had been found
        raise RuntimeError(f"{type(error).__name__}: {error}") from error


def _completion(ctx: Any, param: Any, value: Any) -> None:
    """Install or show the completion script of this program, as typer does."""
    if not value or ctx.resilient_parsing:
        return
    from envtune.cli.program import completion

    shell = None if value is True else value
    completion.show_or_install(ctx, shell, param.name == "install_completion", ctx.obj)
    raise typer.Exit()


def _show_version(value: bool) -> None:
    if value:
        from envtune.cli.program.version import print_version

        print_version()
        raise typer.Exit()


app = typer.Typer(
    cls=LazyGroup,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
VERSION = typer.Option(False, "--version", "-V", is_eager=True, callback=_show_version, help=N_("Show the version."))


@app.callback(help=HELP)
def envtune(
    context: typer.Context,
    lang: Optional[str] = options.LANG,
    color: Optional[str] = options.COLOR,
    version: bool = VERSION,
) -> None:
    """Every verb is a command of its own; --lang and --color may also stand before it."""
    options.default_language = lang
    options.choose_colour(context, color or "auto")
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
