"""The command tree. A verb's module is imported when the verb is used, so that `check` does not pay for `snapshot`."""

from __future__ import annotations

import importlib
import sys
from contextlib import contextmanager
from typing import Any, Iterator, Mapping, Optional, Sequence

import typer
from typer.core import TyperGroup

from envtune.cli import options
from envtune.errors import EnvtuneError
from envtune.messages import N_, Message

# verb -> module; the order is the order of --help
VERBS: Mapping[str, str] = {
    "check": "check",
    "diff": "hosts.diff",
    "fix": "fix",
    "undo": "undo",
    "history": "history",
    "snapshot": "snapshot",
    "collector": "collector",
    "diagnose": "diagnose",
    "npu": "verbs.npu",
    "run": "run",
    "env": "env",
    "explain": "explain",
    "list": "list_",
    "policy": "policy.command",
    "new": "site.new",
    "test-catalog": "site.test_catalog",
}
_USAGE_ERROR: Any = typer.BadParameter.__mro__[1]  # UsageError, which typer does not name
HELP = N_("Makes an Ascend NPU training host ready and keeps it so.")


# The same whatever the program is called: of `envtune.pyz` typer would make a name that no shell takes for a variable.
COMPLETION_VARIABLE = "_ENVTUNE_COMPLETE"


class LazyGroup(TyperGroup):
    """A group whose verbs are imported when asked for, and which says what is wrong in the user's language."""

    def make_context(self, info_name: Any, args: Any, parent: Any = None, **extra: Any) -> Any:
        """Return the context of the program, with help and usage errors in the user's language."""
        lang = language_of(args)
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
        """Run the verb, and report its errors in the user's language."""
        with _errors(ctx.obj):
            return super().invoke(ctx)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the verbs in the order of `--help`, without importing them."""
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Optional[Any]:
        """Import a verb's module and return its command, translated; None when there is no such verb."""
        if cmd_name not in VERBS:
            return None
        module = importlib.import_module(f"envtune.cli.{VERBS[cmd_name]}")
        verb = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        text = Message(module.HELP).to(ctx.obj)
        verb.command(cmd_name, help=text, context_settings=getattr(module, "CONTEXT", None))(module.command)
        command = typer.main.get_command(verb)
        if ctx.obj != "en":
            from envtune.cli.translation import translate_command

            translate_command(command, ctx.obj)
        return command


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
        if type(error).__name__ != "NoArgsIsHelpError":  # whose message is the help
            from envtune.trust.characters import visible

            error.message = visible(error.message)  # it quotes the words of the command line
        if lang != "en":
            from envtune.cli.translation import translate_error

            translate_error(error, lang)
        raise
    except (EOFError, BrokenPipeError) as error:  # which typer would end with 1, as if something had been found
        raise RuntimeError(f"{type(error).__name__}: {error}") from error


def language_of(args: Sequence[str]) -> str:
    """Return the language of help and usage errors: `--lang` wherever it stands before `--`, else the locale's."""
    own = [*args[: args.index("--")]] if "--" in args else [*args]
    for word, following in zip(own, [*own[1:], ""]):
        named = following if word == "--lang" else word[len("--lang=") :] if word.startswith("--lang=") else ""
        if named in ("en", "zh"):
            return named
    return options.language(None)


def _completion(ctx: Any, param: Any, value: Any) -> None:
    """Install or show the completion script of this program, as typer does."""
    if not value or ctx.resilient_parsing:
        return
    from envtune.report.layout import shown

    typers: Any = importlib.import_module("typer.completion")
    program = ctx.find_root().info_name
    shell = value if isinstance(value, str) else typers._get_shell_name() or ""
    if param.name == "show_completion":
        typer.echo(typers.get_completion_script(prog_name=program, complete_var=COMPLETION_VARIABLE, shell=shell))
    else:
        _, path = typers.install(shell, program, COMPLETION_VARIABLE)
        message = Message(
            "{shell} completion installed in {path}; it takes effect in a new terminal", shell=shell, path=path
        )
        typer.echo(shown(message, ctx.obj))
    raise typer.Exit()


app = typer.Typer(
    cls=LazyGroup,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(help=HELP)
def envtune(lang: Optional[str] = options.LANG) -> None:
    """Every verb is a command of its own; --lang may also stand before it."""
    options.default_language = lang
