"""`envtune policy`: write a site's policy from a golden host, and check one."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, List, Optional, Sequence

import typer

from envtune.cli import options
from envtune.messages import N_, Message, Text, clauses, listed, plural

if TYPE_CHECKING:
    from envtune.cli.policy.loading import Loaded
    from envtune.host import Host
    from envtune.model import Report, Waiver
    from envtune.policy.review import ReviewedWaiver

HELP = N_(
    """Write or check a site's policy.

\b
  envtune policy init --from-host -o FILE      golden values from this host
  envtune policy init --from-snapshot host.tar.gz
  envtune policy check                         the policy in use, and its waivers
  envtune policy check FILE --snapshot A --snapshot B

The policy in use is the first of: --policy FILE, the variable ENVTUNE_POLICY, envtune.yaml in this directory or the
nearest one above it (never for root), /etc/envtune/policy.yaml.

Exit status of check: 0 valid, 1 a waiver has expired or waives nothing, 2 usage error, or the file is invalid or
missing.
"""
)
ACTIONS = ("init", "check")
ACTION = typer.Argument(..., metavar="init|check")
FILE = typer.Argument(None, metavar="[FILE]", help=N_("The policy to check (default: the one in use)."))
FROM_HOST = typer.Option(False, "--from-host", help=N_("Take the golden values from this host."))
FROM_SNAPSHOT = typer.Option(None, "--from-snapshot", metavar="FILE", help=N_("Take them from a recorded host."))
OUTPUT = typer.Option(None, "--output", "-o", metavar="FILE", help=N_("The file to write (default: standard output)."))
SNAPSHOT = typer.Option(None, "--snapshot", help=N_("Check the waivers on recorded hosts instead of this one."))
WITHIN = typer.Option(30, "--within", metavar="DAYS", min=0, help=N_("List waivers that expire within this many days."))


def command(
    action: str = ACTION,
    file: Optional[str] = FILE,
    from_host: bool = FROM_HOST,
    from_snapshot: Optional[Path] = FROM_SNAPSHOT,
    output: Optional[Path] = OUTPUT,
    snapshot: Optional[List[Path]] = SNAPSHOT,
    within: int = WITHIN,
    profile: Optional[str] = options.PROFILE,
    format_: str = options.FORMAT,
    lang: Optional[str] = options.LANG,
    catalog: Optional[List[Path]] = options.CATALOG,
) -> None:
    lang = options.language(lang)
    options.require_choice("policy", action, ACTIONS)
    options.require_choice("--format", format_, options.FORMATS)
    if action == "init":
        _init(from_host, from_snapshot, output, lang, catalog)
        return
    from envtune.cli.policy.loading import load_with_policy
    from envtune.errors import UsageError

    loaded = load_with_policy(catalog, lang, file, profile, named_by="policy check")
    if loaded.policy is None:
        raise UsageError(Message("no policy found; create one with envtune policy init, or specify the file"))
    reviewed, day = _reviewed(loaded, snapshot, within)
    if format_ == "json":
        options.print_json(_data(loaded, reviewed, day), 1)
    else:
        _print(loaded, reviewed, _day_text(day, bool(snapshot)), lang)
    raise typer.Exit(1 if any(row.needs_work for row in reviewed) else 0)


# ---------------------------------------------------------------------- init


def _init(
    from_host: bool, from_snapshot: Optional[Path], output: Optional[Path], lang: str, catalog: Optional[List[Path]]
) -> None:
    from envtune.catalog import select
    from envtune.context.open import open_host
    from envtune.errors import UsageError
    from envtune.policy.write import policy_text

    if from_host == (from_snapshot is not None):
        raise UsageError(Message("policy init: add --from-host or --from-snapshot FILE"))
    if output is not None and os.path.lexists(output):
        raise UsageError(Message("{output} exists; name another file", output=output))
    catalogue = options.load_catalogue(catalog, lang)
    host = open_host(from_snapshot)
    text = policy_text(_report(host, select(catalogue.checks), catalogue.expectations), lang)
    if output is None:
        options.print_document(text)
        return
    try:
        _write_new(output, text.encode("utf-8"))
    except OSError as error:
        options.fail_to_write(str(output), error, lang)
    options.print_error(Message("{output} written; use it with --policy {output}", output=output), lang)


def _write_new(path: Path, content: bytes) -> None:
    """Write a file that is not there yet; other users may read it. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    with open(descriptor, "wb") as file:
        file.write(content)


def _report(host: Host, checks: Sequence[Any], expectations: Any) -> Report:
    from envtune.audit import check_host
    from envtune.audit.limited import check_limited
    from envtune.job.target import TargetOptions

    checking = check_host if host.live else check_limited
    return checking(host, TargetOptions(), checks, None, expectations)


# ---------------------------------------------------------------------- check


def _reviewed(loaded: Loaded, snapshots: Optional[Sequence[Path]], within: int) -> tuple[Sequence[ReviewedWaiver], str]:
    """Return the waivers, tried on this host or on recorded ones, and the day they are judged by.

    It is the day by the host's clock, as in `check`; of several recorded hosts the latest.
    """
    from envtune.context.open import open_host
    from envtune.policy.dates import DAY, date_of
    from envtune.policy.review import review

    assert loaded.policy is not None
    catalogue = loaded.catalogue
    checks = [check for check in catalogue.checks if check.waivers]
    paths: Sequence[Optional[Path]] = snapshots or [None]
    hosts = [open_host(path) for path in paths] if checks else []
    reports = [_report(host, checks, catalogue.expectations) for host in hosts]
    now = max((host.now for host in hosts), default=time.time())
    reviewed = review(
        loaded.policy.waivers,
        [finding for report in reports for finding in report.findings],
        [host.name for host in hosts],
        date_of(now),
        date_of(now + within * DAY),
    )
    return reviewed, date_of(now)


def _day_text(day: str, recorded: bool) -> Text:
    """Return by which day waivers are judged."""
    if recorded:
        return Message("waivers as of {day}, when the host was recorded", day=day)
    return Message("waivers as of {day}", day=day)


def _data(loaded: Loaded, reviewed: Sequence[ReviewedWaiver], day: str) -> dict[str, Any]:
    rows = [{**row.waiver._asdict(), "state": row.state, "used": row.used} for row in reviewed]
    return {"schema": "envtune.policy-check/1", **loaded.shown, "date": day, "waivers": rows}


def _print(loaded: Loaded, reviewed: Sequence[ReviewedWaiver], day: Text, lang: str) -> None:
    """Print what the policy holds, and each waiver that somebody should look at."""
    from envtune.report.layout import display_width, indent, printable

    attention = sum(1 for row in reviewed if row.needs_work)
    state: Text = Message("valid")
    if attention:
        state = plural("valid; 1 waiver needs attention", "valid; {count} waivers need attention", attention)
    typer.echo(printable(Message("{label}: {text}", label=loaded.shown["file"], text=state).to(lang)))
    counts = clauses([_counts(loaded), *([day] if reviewed else [])])
    for line in indent(counts.to(lang), options.terminal_width(), "  ", "  "):
        typer.echo(line)
    for row in reviewed:
        remark = _remark(row)
        if remark is not None:
            label, hint = remark
            first = f"  {row.waiver.check:8} " + Message("{label}: {text}", label=label, text="").to(lang)
            words = printable(clauses((_waiver_text(row.waiver), hint)).to(lang))
            for line in indent(words, options.terminal_width(), first, " " * min(display_width(first), 30)):
                typer.echo(line)


def _counts(loaded: Loaded) -> Text:
    assert loaded.policy is not None
    policy = loaded.policy
    changed = {
        id_ for layer in policy.layers for part in (layer.expect, layer.thresholds, layer.severities) for id_ in part
    }
    parts: list[Text] = [
        plural("1 golden value", "{count} golden values", len(policy.facts)),
        plural("1 check changed", "{count} checks changed", len(changed)),
        plural("1 waiver", "{count} waivers", len(policy.waivers)),
    ]
    if policy.profile:
        parts.append(Message("profile {name}", name=policy.profile))
    return listed(parts)


def _remark(row: ReviewedWaiver) -> Optional[tuple[Text, Text]]:
    """Return what is to be said of a waiver, and what to do; None where nothing is."""
    from envtune.policy.review import EXPIRED, SOON

    if row.state == EXPIRED and row.used is False:
        return Message("expired"), Message("nothing is left that it would waive: remove the entry")
    elif row.state == EXPIRED:
        return Message("expired"), Message("fix the finding and remove the entry, or agree on a new date")
    elif row.used is False:
        return Message("not used"), Message("it waives no finding: remove the entry")
    elif row.state == SOON:
        return Message("expires soon"), Message("fix the finding, or agree on a new date")
    return None


def _waiver_text(waiver: Waiver) -> Text:
    return Message(
        "{subject} on {hosts}, until {expires}, {owner}: {reason}",
        subject=Message("every subject") if waiver.subject == "*" else waiver.subject,
        hosts=Message("every host") if waiver.hosts == "*" else waiver.hosts,
        expires=waiver.expires,
        owner=waiver.owner,
        reason=waiver.reason,
    )
