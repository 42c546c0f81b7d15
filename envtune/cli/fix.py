"""`envtune fix`: what would repair this host; with --apply, do it, and run the same checks again."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, List, Mapping, Optional, Sequence, Union

import typer

from envtune.cli import options
from envtune.cli.options import is_interactive
from envtune.cli.program.language import language_of_locale
from envtune.messages import N_, Literal, Message, Text, enumerated, listed, plural

if TYPE_CHECKING:
    from envtune.catalog import Catalogue
    from envtune.cli.verbs.measuring import Bench
    from envtune.fix.apply import FixOutcome
    from envtune.fix.consent import Consent, Question
    from envtune.fix.plan import Plan
    from envtune.fix.prepare import PreparedFix
    from envtune.host import Host
    from envtune.model import Change, Check, Severity

HELP = N_(
    """Show fixes for this host, or apply them.

Without --apply nothing is changed; with it, the same checks run again afterwards.

\b
Examples:
  envtune fix                             what can be fixed (-v: details)
  envtune fix CPU001 --apply              fix it; asks once
  envtune fix --faq F06                   fixes for the FAQ entry F06
  envtune fix --format json > plan.json   the plan as data
  envtune fix --plan plan.json --apply    apply it later on this host
  envtune resume 20250102-030405          finish an interrupted run

Exit status: 0 nothing left to fix, 1 problems remain (or return at the next boot), 2 usage error, 3 something is
unknown, 128+n ended by signal n (129 SIGHUP, 130 Ctrl-C, 143 SIGTERM).
"""
)
WORDS = typer.Argument(None, metavar="[ID|FAMILY|PLAYBOOK]...", help=N_("What to fix: checks, families or playbooks."))
FAQ = typer.Option(None, "--faq", help=N_("Fix the checks of this FAQ entry (F06)."))
SELECT = typer.Option(None, "--select", "-s", help=N_("Same as the positional arguments."))
APPLY = typer.Option(False, "--apply", help=N_("Apply the changes, after asking once."))
YES = typer.Option(False, "--yes", "-y", help=N_("Do not ask."))
YES_CONFIRM = typer.Option(
    False, "--yes-confirm", help=N_("Also apply changes that need separate confirmation or that running jobs use.")
)
REFUSE_RUNNING = typer.Option(False, "--refuse-running", help=N_("Do not change anything that a running process uses."))
CHANGE = typer.Option(None, "--change", help=N_("Only these changes of the plan (C01,C02)."))
BENCH = typer.Option(False, "--bench", help=N_("With --apply: measure, and keep the changes only if they help."))
PLAN = typer.Option(None, "--plan", help=N_("A plan saved with --format json."))
FINISH = typer.Option(None, "--finish", metavar="RUN", help=N_("Same as `envtune resume RUN`."))
WHEELS = typer.Option(None, "--wheels", help=N_("Directory with wheels, for hosts without a network."))
OWNER = typer.Option(None, "--owner", help=N_("With --pid: the user who must own that process."))
SNAPSHOT = typer.Option(None, "--snapshot", help=N_("Show the fixes for a recorded host."))
VERBOSE = typer.Option(False, "--verbose", "-v", help=N_("Show every operation and all manual steps."))
PID = typer.Option(None, "--pid", help=N_("A running job, or the process to end."))


def command(
    context: typer.Context,
    words: Optional[List[str]] = WORDS,
    faq: Optional[List[str]] = FAQ,
    select: Optional[List[str]] = SELECT,
    ignore: Optional[List[str]] = options.IGNORE,
    tag: Optional[List[str]] = options.TAG,
    severity: str = options.SEVERITY,
    fail_on: str = options.FAIL_ON,
    apply: bool = APPLY,
    yes: bool = YES,
    yes_confirm: bool = YES_CONFIRM,
    refuse_running: bool = REFUSE_RUNNING,
    bench: bool = BENCH,
    change: Optional[List[str]] = CHANGE,
    plan: Optional[Path] = PLAN,
    finish: Optional[str] = FINISH,
    wait: float = options.WAIT,
    peer: Optional[List[str]] = options.PEER,
    hostfile: Optional[Path] = options.HOSTFILE,
    wheels: Optional[Path] = WHEELS,
    owner: Optional[str] = OWNER,
    format_: str = options.FORMAT,
    lang: Optional[str] = options.LANG,
    verbose: bool = VERBOSE,
    snapshot: Optional[List[Path]] = SNAPSHOT,
    python: Optional[str] = options.PYTHON,
    pid: Optional[int] = PID,
    script: Optional[str] = options.SCRIPT,
    env_file: Optional[str] = options.ENV_FILE,
    catalog: Optional[List[Path]] = options.CATALOG,
    policy: Optional[str] = options.POLICY,
    profile: Optional[str] = options.PROFILE,
) -> None:
    from envtune.cli.policy.loading import load_with_policy
    from envtune.context.open import open_host
    from envtune.errors import UsageError
    from envtune.fix.consent import Consent
    from envtune.fix.plan import named_options
    from envtune.fix.prepare import prepare
    from envtune.fix.selection import choose_checks

    dialogue = Dialogue(options.language(lang), format_, yes, options.given_options(context), verbose)
    options.require_choice("--format", format_, options.FORMATS)
    options.threshold_named(fail_on)
    recorded = options.single_snapshot(snapshot)
    dialogue.recorded = options.recorded_name(recorded)
    if apply and recorded is not None:
        raise UsageError(Message("--apply changes this host; it cannot change a recorded one"))
    if bench and (not apply or format_ != "text"):
        raise UsageError(Message("--bench requires --apply, and text: `envtune bench` writes JSON"))
    options.limit_reading(recorded, dialogue.lang)
    if plan is not None:
        _refuse_with_plan(context)
    if finish is not None:
        from envtune.cli.program.resume import resume

        resume(finish, wait, format_, dialogue.lang)
    loaded = load_with_policy(catalog, dialogue.lang, policy, profile)
    catalogue, threshold = loaded.catalogue, options.threshold_named(loaded.fail_on(context, fail_on))
    dialogue.again = [*dialogue.again, *loaded.words(policy)]
    selected = [*(words or ()), *(select or ())]
    checks: tuple[Check, ...] = ()
    if plan is None:
        floor = options.severity_named(severity)
        chosen = loaded.selectors(selected, faq, ignore, tag)
        checks = choose_checks(catalogue, chosen.select, faq or (), chosen.ignore, chosen.tags, floor)
    nodes = any(check.family == "NET" for check in checks)
    named = given_values(python, pid, script, env_file, wheels, owner, _peers(peer, hostfile, nodes))
    dialogue.report_interrupted(apply)
    host = open_host(recorded)
    if plan is None:
        named.update(_chosen_language(dialogue.lang))
        target, fix_options = named_options(host, named)
        prepared = prepare(host, target, checks, catalogue, fix_options)
    else:
        prepared = _rebuilt(host, plan, catalogue, named)
    pieces = split_words(selected), split_words(change, upper=True)
    consent = Consent(*pieces, yes_confirm, refuse_running, is_interactive())
    if not apply:
        prepared = prepared.with_only(consent.changes)
        dialogue.print_prepared(prepared)
        raise typer.Exit(prepared.exit_code(threshold))
    raise typer.Exit(dialogue.apply(prepared, consent, threshold, wait, dialogue.bench() if bench else None))


# What chooses checks: a saved plan has chosen them, and would be carried out as a whole all the same.
_CHOOSING = ("words", "faq", "select", "ignore", "tag", "severity", "finish")


def _refuse_with_plan(context: typer.Context) -> None:
    """Raise UsageError where something was given that a saved plan does not listen to."""
    from envtune.errors import UsageError

    for parameter in options.given_parameters(context):
        if parameter.name in _CHOOSING:
            given = "WORDS" if parameter.name == "words" else max(parameter.opts, key=len)
            raise UsageError(
                Message(
                    "{given} cannot be used with --plan, which defines the changes; --change selects from it",
                    given=given,
                )
            )


def split_words(words: Optional[Sequence[str]], upper: bool = False) -> tuple[str, ...]:
    """Return the pieces of words that are joined by commas."""
    pieces = tuple(piece.strip() for part in words or () for piece in part.split(","))
    return tuple(map(str.upper, pieces)) if upper else pieces


def given_values(
    python: Optional[str],
    pid: Optional[int],
    script: Optional[str],
    env_file: Optional[str],
    wheels: Optional[Path],
    owner: Optional[str],
    peers: tuple[str, ...],
) -> dict[str, Any]:
    """Return what was named on the command line, as `named_options` takes it."""
    from envtune.errors import UsageError, no_directory_text

    if owner is not None and pid is None:
        raise UsageError(Message("--owner requires --pid: the process to end"))
    problem = None if wheels is None else no_directory_text(str(wheels))
    if problem is not None:
        raise UsageError(Message("--wheels {wheels}: {reason}", wheels=wheels, reason=problem))
    named = {
        "python": python,
        "pid": pid,
        "script": script,
        "env_file": None if env_file is None else str(Path(env_file).absolute()),
        "wheels": None if wheels is None else str(wheels.absolute()),
        "owner": owner,
        "peers": peers or None,
    }
    return {name: value for name, value in named.items() if value is not None}


def _peers(peer: Optional[List[str]], hostfile: Optional[Path], slurm: bool) -> tuple[str, ...]:

    from envtune.job.peers import read_peers

    return read_peers(peer or [], hostfile, os.environ.get("SLURM_JOB_NODELIST", "") if slurm else "")


def _chosen_language(lang: str) -> dict[str, str]:
    """Return the language of the comments in what is written, where it is not that of the locale."""
    return {} if lang == language_of_locale() else {"lang": lang}


def _rebuilt(host: Host, path: Path, catalogue: Catalogue, named: Mapping[str, Any]) -> PreparedFix:
    """Return the plan of a file as it comes out on this host."""
    from envtune.errors import PlanError, UsageError
    from envtune.fix.rebuild import prepare_saved
    from envtune.fix.selection import read_plan

    try:
        return prepare_saved(host, read_plan(path), catalogue, named)
    except PlanError as error:
        raise UsageError(Message("--plan {path}: {reason}", path=path, reason=error.message)) from None


class Dialogue:
    """Prints plans and results, and asks: everything `fix` says to its user."""

    def __init__(self, lang: str, format_: str, yes: bool, again: Sequence[str], verbose: bool) -> None:
        self.lang, self._format, self._yes, self._verbose = lang, format_, yes, verbose
        self.recorded = ""  # the snapshot of the host that is not this one
        self.again = again  # the options with which root goes on

    def _say(self, text: Text) -> None:
        typer.echo(text.to(self.lang), err=True)

    def report_interrupted(self, writing: bool) -> None:
        """Say which runs were interrupted; nothing is written on top of them."""
        from envtune.cli.history import refuse_if_interrupted, report_interrupted_runs

        if writing:
            refuse_if_interrupted(self.lang)
        else:
            report_interrupted_runs(self.lang)

    # ------------------------------------------------------------------ the plan

    def print_prepared(self, prepared: PreparedFix) -> None:
        """Print the plan of a fix that is not applied."""
        from envtune.report.layout import wrap

        plan = prepared.plan
        if self._format == "json":
            from envtune.fix.document import render

            options.print_document(render(plan, self.lang) + "\n")
            return
        text = self._plan_text(plan) if self._verbose else self._short_text(plan)
        typer.echo(text if plan.changes else text.rstrip("\n"))
        if plan.changes:
            typer.echo("\n".join(wrap(self._end().to(self.lang), options.terminal_width())))
        elif not plan.not_fixed:
            typer.echo(_checked(prepared).to(self.lang))

    def _end(self) -> Text:
        """Return how the changes of a plan are made; a recorded host itself cannot be changed."""
        if self.recorded:
            return Message("Nothing was changed. To apply it, run fix --apply on that host, without --snapshot")
        return Message("Nothing was changed. To apply it, run the same command with --apply")

    def _short_text(self, plan: Plan) -> str:
        from envtune.report.plan.short import render

        return render(plan, self.lang, width=options.terminal_width(), colour=options.colour_wanted())

    def _plan_text(self, plan: Plan) -> str:
        from envtune.report.plan.text import render

        return render(
            plan, self.lang, width=options.terminal_width(), colour=options.colour_wanted(), verbose=self._verbose
        )

    # ------------------------------------------------------------------ apply

    def bench(self) -> Bench:
        """Return the measurement that fits the checks; what helps is kept."""
        from envtune.cli.verbs.measuring import Bench

        return Bench(self.lang, keep=True, yes=self._yes)

    def apply(
        self,
        prepared: PreparedFix,
        consent: Consent,
        threshold: Optional[Severity],
        wait: float,
        bench: Optional[Bench] = None,
    ) -> int:
        """Carry the plan out, print what came of it, and return the exit status; `bench` may undo it."""
        from envtune.cli.progress import Progress
        from envtune.fix.apply import apply

        if bench is not None:
            bench.refuse_early(prepared.with_only(consent.changes))
        progress = self._progress = Progress(self.lang)
        show, interrupted = self._show if self._format == "text" else None, False
        try:
            outcome = apply(prepared, consent, ask=self._ask, on_event=progress, show=show, wait=wait)
        except typer.Abort as abort:
            typer.echo(err=True)  # Ctrl-C and Ctrl-D leave the cursor behind the question
            outcome, interrupted = None, isinstance(abort.__context__, KeyboardInterrupt)
        if outcome is None:
            self._say(Message("envtune: nothing was changed"))
            if interrupted:
                return options.INTERRUPTED
            return prepared.exit_code(threshold) if is_interactive() else options.USAGE
        if bench is not None and bench.can_measure(outcome):
            outcome = bench.decide(prepared, outcome, consent)
            if outcome is None or self._format == "json":
                return 1
        if outcome.result.run or outcome.result.withheld or self._format == "json":
            self._print_outcome(prepared, outcome)
        return outcome.exit_code(threshold)

    def _show(self, plan: Plan) -> None:
        typer.echo(self._plan_text(plan))

    def _ask(self, question: Question) -> Union[bool, Sequence[str]]:
        """Ask once about all changes; without a terminal only --yes answers, and not for what needs confirmation.

        Raises typer.Abort at Ctrl-C and Ctrl-D: that is a no to everything.
        """
        changes, confirm = question.changes, question.confirm
        self._name_running(question)
        if question.separate:
            return is_interactive() and self._confirm(Message("Make this change?"), changes)
        self._progress.total = len(changes)
        if self._yes:
            asked = [change for change in changes if change.id in confirm]
            agreed = [change.id for change in changes if change not in asked]
            return [*agreed, *self._chosen(asked)] if asked else True
        if not is_interactive():
            count = len(changes)
            self._say(Message("envtune: changes to make: {count}; no terminal to ask on: use --yes", count=count))
            return False
        return self._chosen(changes)

    def _chosen(self, changes: Sequence[Change]) -> Sequence[str]:
        """Show the changes and ask; return the ids of those that are agreed to: all, none, or those that are named."""
        ids = [change.id for change in changes]
        if len(ids) == 1:
            return ids if self._confirm(Message("Make this change?"), changes) else []
        self._show_table(changes)
        words = Message(
            "Make these {count} changes? [y/N, or ids such as {ids}]", count=len(ids), ids=",".join(ids[:2])
        )
        while True:
            answer = typer.prompt(words.to(self.lang), default="", show_default=False, err=True).strip()
            if answer.lower() in ("", "n", "no"):
                return []
            if answer.lower() in ("y", "yes"):
                return ids
            named = [word for word in answer.upper().replace(",", " ").split() if word]
            if all(word in ids for word in named):
                return named
            self._say(Message("answer y, n, or ids: {ids}", ids=enumerated(ids)))

    def _confirm(self, question: Text, changes: Sequence[Change]) -> bool:
        self._show_table(changes)
        return typer.confirm(question.to(self.lang), default=False, err=True)

    def _show_table(self, changes: Sequence[Change]) -> None:
        from envtune.report.plan.text import table

        for line in table(changes, self.lang, options.terminal_width()):
            typer.echo(line, err=True)

    def _name_running(self, question: Question) -> None:
        """Name the processes that use what would be changed."""
        from envtune.report.layout import printable

        uses = {use.process.pid: use for change in question.changes for use in question.running.uses.get(change.id, ())}
        if uses:
            typer.echo(Message("Running processes use what the plan changes:").to(self.lang), err=True)
        for use in uses.values():
            typer.echo(f"  {printable(use.text.to(self.lang))}", err=True)
        if question.running.unreadable and not question.separate:
            words = Message("processes that cannot be inspected: {count}", count=question.running.unreadable)
            typer.echo(f"  {words.to(self.lang)}", err=True)

    def _print_outcome(self, prepared: PreparedFix, outcome: FixOutcome) -> None:
        from envtune.report.plan import result as fix_text

        result = outcome.result
        if self._format == "json":
            options.print_document(fix_text.render_json(prepared.plan, outcome, self.lang) + "\n")
        else:
            width, colour = options.terminal_width(), options.colour_wanted()
            typer.echo(fix_text.render(prepared.findings, outcome, prepared.plan, self.lang, width, colour))
        for_root = tuple(withheld.change for withheld in result.withheld if withheld.why == "root")
        if for_root:
            asked = [*self.again, *_job_python(prepared.plan, for_root, self.again)]
            print_for_root(for_root, asked, self.lang)


def _checked(prepared: PreparedFix) -> Text:
    """Where nothing is wrong: what was looked at, so that silence is not taken for an answer."""
    from envtune.model import Outcome

    kinds = {
        Outcome.PASS: N_("{count} passed"),
        Outcome.NOTAPPLICABLE: N_("{count} not applicable"),
        Outcome.WAIVED: N_("{count} waived"),
        Outcome.FAIL: N_("{count} with a note"),  # a problem would be listed
    }
    outcomes = [*{finding.id: finding.outcome for finding in prepared.findings}.values()]
    first = prepared.findings[0] if len(outcomes) == 1 else None
    if first is not None and first.outcome is Outcome.NOTAPPLICABLE and first.reason is not None:
        return Message("{check} does not apply to this host ({why})", check=first.id, why=first.reason)
    counts = listed(Message(kinds[kind], count=outcomes.count(kind)) for kind in kinds if kind in outcomes)
    return plural("1 check: {outcomes}", "{count} checks: {outcomes}", len(outcomes), outcomes=counts)


def _job_python(plan: Plan, changes: Sequence[Change], given: Sequence[str]) -> list[str]:
    """Return the option that names the job's Python, where changes are about it: root has another PATH."""
    about_job = any(change.scope == "job" for change in changes)
    python = plan.target.get("python")
    return ["--python", python] if about_job and python and not {"--python", "--pid"} & {*given} else []


def print_for_root(changes: Sequence[Change], given: Sequence[str], lang: str) -> None:
    """Print how root makes these changes, or does the same by hand. No file of this user's tells root what to do."""
    from envtune.commandline import WithheldError, line, own_program
    from envtune.report.layout import printable, shown

    heading = plural("1 change needs root. As root:", "{count} changes need root. As root:", len(changes))
    named, program = list(dict.fromkeys(change.finding for change in changes)), own_program()
    try:
        command: Text = Literal(line(["sudo", *program, "fix", *named, *given, "--apply"]))
    except WithheldError as error:
        command = error.reason
    typer.echo(f"\n{heading.to(lang)}\n  {shown(command, lang)}", err=True)
    exposed = _exposed(program)
    if exposed is not None:
        typer.echo(f"  {printable(exposed.to(lang))}", err=True)
    typer.echo(Message("or by hand, without a journal:").to(lang), err=True)
    for change in changes:
        typer.echo(f"# {change.id} {change.finding} {printable(change.target)}", err=True)
        for row in _typed_by_hand(change, lang):
            typer.echo(row, err=True)  # at the very left: the end of a here-document must be there


def _typed_by_hand(change: Change, lang: str) -> list[str]:
    """Return the lines that do the same; none where a line would not be what is seen, but why."""
    from envtune.fix.shell_commands import shell_lines
    from envtune.report.layout import printable

    rows = list(shell_lines(change))
    if all(printable(row) == row for row in rows):
        return rows
    reason = Message("not shown: it contains control characters or a secret; the plan (--format json) has it")
    return [f"# {reason.to(lang)}"]


def _exposed(command: Sequence[str]) -> Optional[Text]:
    """Return what others could change of the command that root is told to type; None when nobody can."""
    from envtune import version
    from envtune.trust.ownership import who_can_change

    programs = [*(word for word in command if word.startswith("/")), sys.executable]
    for path in (*programs, *map(os.path.dirname, programs), os.path.dirname(os.path.abspath(version.__file__))):
        try:
            exposure = who_can_change(path, 0)
        except OSError:
            continue  # an archive's inside is as safe as the archive
        if exposure is not None:
            return Message(
                "{program} cannot be run as root: others can change {path} (owner {uid}, mode {mode}); "
                "install envtune where only root can write",
                program=command[0],
                uid=exposure.uid,
                path=exposure.path,
                mode=f"{exposure.mode:04o}",
            )
    return None
