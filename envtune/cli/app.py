"""The command tree. A verb's module is imported when the verb is used, so that `check` does not pay for `snapshot`."""

from __future__ import annotations

import importlib
from typing import Any, Mapping, Optional

import typer
from typer.core import TyperGroup

# verb -> (module, one line of help); the order is the order of --help
VERBS: Mapping[str, tuple[str, str]] = {
    "check": ("check", "Is this host ready, and if not, what exactly is wrong?"),
    "fix": ("fix", "What would repair this host; with --apply, repair it and check again."),
    "undo": ("undo", "Take back what a run of fix changed."),
    "history": ("history", "What fix changed on this host, run by run."),
    "snapshot": ("snapshot", "Record this host, to be judged elsewhere or by somebody else."),
    "collector": ("collector", "The recorder as one file, for hosts on which nothing is installed."),
    "diagnose": ("diagnose", "Which known error is in this log, and is its cause so on this host?"),
    "run": ("run", "Check the host, run a command, and diagnose it when it fails."),
    "env": ("env", "The variables a job should get on this host, as lines to source."),
    "explain": ("explain", "What a check, a known error or a playbook is about."),
    "list": ("list_", "The checks, FAQ entries or playbooks there are."),
}


# The same whatever the program is called: of `envtune.pyz` typer would make a name that no shell takes for a variable.
COMPLETION_VARIABLE = "_ENVTUNE_COMPLETE"


class LazyGroup(TyperGroup):
    """A group whose verbs are imported when asked for."""

    def make_context(self, *args: Any, **settings: Any) -> Any:
        for param in self.params:
            if param.name in ("install_completion", "show_completion"):
                param.callback = _completion
        return super().make_context(*args, **settings)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Optional[Any]:
        if cmd_name not in VERBS:
            return None
        module = importlib.import_module(f"envtune.cli.{VERBS[cmd_name][0]}")
        verb = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        verb.command(cmd_name, help=module.HELP, context_settings=getattr(module, "CONTEXT", None))(module.command)
        return typer.main.get_command(verb)


def _completion(ctx: Any, param: Any, value: Any) -> None:
    """Install or show the completion script of this program, as typer does."""
    if not value or ctx.resilient_parsing:
        return
    typers: Any = importlib.import_module("typer.completion")
    program = ctx.find_root().info_name
    shell = value if isinstance(value, str) else typers._get_shell_name() or ""
    if param.name == "show_completion":
        typer.echo(typers.get_completion_script(prog_name=program, complete_var=COMPLETION_VARIABLE, shell=shell))
    else:
        _, path = typers.install(shell, program, COMPLETION_VARIABLE)
        typer.echo(f"{shell} completion installed in {path}; it takes effect in a new terminal")
    raise typer.Exit()


app = typer.Typer(
    cls=LazyGroup,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def envtune() -> None:
    """Makes an Ascend NPU training host ready and keeps it so."""
