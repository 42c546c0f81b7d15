"""Completion in bash, zsh and fish: what a shell runs, and the answer to it.

The shell's function starts envtune with the words of the line as arguments, the last of them unfinished, and
`_ENVTUNE_COMPLETE` set to its name. The answer is a value per line with its description behind a tab; exit status 1
says that files are wanted. Ids come from the compiled catalog or from the names of the files: nothing is compiled,
and no check runs.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from pathlib import Path
from typing import Any, Iterator, Mapping, Optional, Sequence

import typer

from envtune.cli import options
from envtune.cli.program.values import FilesWanted, Known, Value
from envtune.messages import N_, Message, alternatives

HELP = N_(
    """Print or install completion for a shell.

It completes verbs, options, ids of checks, errors and playbooks, formats, and runs.

\b
Examples:
  envtune completion --install                 for the shell you are in, in your home directory
  envtune completion bash > /etc/bash_completion.d/envtune
  envtune completion zsh > /usr/local/share/zsh/site-functions/_envtune
  envtune completion fish > /etc/fish/completions/envtune.fish
"""
)
SHELL = typer.Argument(None, metavar="[SHELL]", help=N_("bash, zsh or fish (default: the shell you are in)."))
INSTALL = typer.Option(False, "--install", help=N_("Install it for this user instead of printing it."))

VARIABLE = "_ENVTUNE_COMPLETE"
VALUES, FILES = 0, 1  # exit statuses

_BASH = """\
%(function)s() {
    local out line
    COMPREPLY=()
    if out=$(%(variable)s=bash %(command)s "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null); then
        while IFS= read -r line; do
            [ -z "$line" ] || COMPREPLY+=("${line%%%%$'\\t'*}")
        done <<< "$out"
    else
        compopt -o default
    fi
}
complete -F %(function)s %(name)s
"""
_ZSH = """\
#compdef %(name)s
%(function)s() {
    local out line
    local -a values
    if out=$(%(variable)s=zsh %(command)s "${(@)words[2,CURRENT]}" 2>/dev/null); then
        [[ $PREFIX == --*=* ]] && compset -P '*='
        for line in "${(@f)out}"; do
            [[ -n $line ]] && values+=("${${line%%%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}")
        done
        _describe -V envtune values
    else
        [[ $PREFIX == --*=* ]] && compset -P '*='
        _files
    fi
}
if [ "$funcstack[1]" = "_%(name)s" ]; then
    %(function)s "$@"
else
    compdef %(function)s %(name)s
fi
"""
_FISH = """\
function %(function)s
    set -l words (commandline -opc)
    set -e words[1]
    env %(variable)s=fish %(command)s $words (commandline -ct) 2>/dev/null
    or __fish_complete_path (commandline -ct)
end
complete --command %(name)s --no-files --keep-order --arguments '(%(function)s)'
"""
SCRIPTS: Mapping[str, str] = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def command(
    context: typer.Context,
    shell: Optional[str] = SHELL,
    install: bool = INSTALL,
    lang: Optional[str] = options.LANG,
) -> None:
    show_or_install(context, shell, install, options.language(lang))


def script(shell: str, name: str) -> str:
    """Return what a shell runs to complete a program of that name; it starts this envtune by its absolute path."""
    from shlex import quote

    from envtune.commandline import own_program

    function = "_" + re.sub(r"\W", "_", name, flags=re.ASCII) + "_completion"
    started = os.path.abspath(sys.argv[0])
    program = [started] if os.path.isfile(started) and os.access(started, os.X_OK) else own_program()
    command = " ".join(map(quote, program))
    return SCRIPTS[shell] % {"function": function, "variable": VARIABLE, "command": command, "name": name}


def answer(group: Any, shell: str, words: Sequence[str], lang: str) -> int:
    """Print what completes the last of the words; return the exit status."""
    if shell not in SCRIPTS:
        return FILES
    typed = [word for word in words[:-1] if word != "="]  # bash takes `--select=CPU` apart
    word = words[-1] if words else ""
    prefix, _, last = word.partition("=") if re.match("--[a-z-]+=", word) else ("", "", word)
    if prefix:
        typed, last = [*typed, prefix], last
    last = "" if last == "=" else last
    try:
        found = [*_values(group, typed, last, lang, named=shell != "bash")]
    except FilesWanted:
        return FILES
    before = f"{prefix}=" if prefix and shell == "fish" else ""
    for one in found:
        sys.stdout.write(f"{before}{one.value}\t{one.help}\n" if one.help else f"{before}{one.value}\n")
    return VALUES


def _values(group: Any, typed: Sequence[str], last: str, lang: str, named: bool) -> Iterator[Value]:
    """Yield the words that may stand there: verbs, options, values. Raises FilesWanted."""
    if not last.startswith("-") and _is_verb_due(typed):
        yield from _verbs(group.verbs, last, lang, named)
        return
    group.known = Known(lang, typed, group.verbs)
    group.known.offer(group)
    complete: Any = importlib.import_module("typer._completion_classes").BashComplete
    for one in complete(group, {"obj": lang}, "envtune", VARIABLE).get_completions([*typed], last):
        yield Value(str(one.value), " ".join(str(one.help or "").split()))


def _is_verb_due(typed: Sequence[str]) -> bool:
    while typed[:1] in (["--lang"], ["--color"]):
        if len(typed) == 1:  # its value is due
            return False
        typed = typed[2:]
    return not typed


def _verbs(verbs: Mapping[str, str], start: str, lang: str, named: bool) -> Iterator[Value]:
    """Yield the verbs; their modules are imported for the descriptions only, which bash does not show."""
    for verb, module in verbs.items():
        if verb.startswith(start):
            text = Message(importlib.import_module(f"envtune.cli.{module}").HELP).to(lang) if named else ""
            yield Value(verb, text.partition("\n")[0])


def _install(shell: str, name: str) -> str:
    """Write the script where the shell finds it, and return the path. Raises OSError."""
    home = Path.home()
    if shell == "bash":  # bash-completion looks here by the name of the program; ~/.bashrc is for hosts without it
        path = home / ".bash_completions" / f"{name}.sh"
        _add_line(home / ".bashrc", f"source '{path}'")
    elif shell == "zsh":
        path = home / ".zfunc" / f"_{name}"
        _add_line(home / ".zshrc", "fpath+=~/.zfunc; autoload -Uz compinit; compinit")
    else:
        path = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "fish" / "completions" / f"{name}.fish"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script(shell, name), "utf-8")
    return str(path)


def _add_line(path: Path, line: str) -> None:
    text = path.read_text("utf-8", "surrogateescape") if path.is_file() else ""
    if line not in text.splitlines():
        with path.open("a", encoding="utf-8", errors="surrogateescape") as file:
            file.write(f"\n{line}\n" if text and not text.endswith("\n") else f"{line}\n")


def show_or_install(context: Any, shell: Optional[str], install: bool, lang: str) -> None:
    """Print the script of a shell, the one that started envtune unless it is named, or install it.

    Raises UsageError for a shell that has none, and where it cannot be written.
    """
    from envtune.errors import UsageError
    from envtune.report.layout import shown

    name = os.path.basename(context.find_root().info_name or "")
    name = "envtune" if not name or " " in name else name  # python -m envtune
    shell = shell or importlib.import_module("typer.completion")._get_shell_name() or ""
    if shell not in SCRIPTS:
        raise UsageError(Message("specify the shell: {names}", names=alternatives(SCRIPTS)))
    if not install:
        typer.echo(script(shell, name), nl=False)
        return
    try:
        path = _install(shell, name)
    except OSError as error:
        options.fail_to_write(error.filename or "?", error, lang)
    message = Message(
        "{shell} completion installed in {path}; it takes effect in a new terminal", shell=shell, path=path
    )
    typer.echo(shown(message, lang))
