"""From logs to diagnoses: read them, find the signatures, decide on the cause, run the confirming checks."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import replace
from typing import Callable, Iterable, Optional, Sequence

from envtune.audit import FindFixes
from envtune.catalog import Catalogue, load
from envtune.context.open import UNNAMED
from envtune.diagnose.code_forms import PATTERNS
from envtune.diagnose.codes import found_codes, with_codes
from envtune.diagnose.confirm import ConfirmingHost
from envtune.diagnose.diagnosis import Diagnosis, DiagnosisReport, report_diagnoses
from envtune.diagnose.events.mentions import of_entries, without_mentions
from envtune.diagnose.evidence import with_weak_signs
from envtune.diagnose.logs.files import LogFile, find_logs
from envtune.diagnose.logs.lines import TimeWindow, time_of
from envtune.diagnose.logs.own import find_own_logs
from envtune.diagnose.patterns import Matcher, patterns_of, process_patterns, select_prefilter, table_patterns
from envtune.diagnose.rank import no_environment, resolve
from envtune.diagnose.redaction import redacted_report
from envtune.diagnose.scan import scan
from envtune.diagnose.tables import states_of, with_states
from envtune.errors import UsageError
from envtune.host import Host, LocalHost
from envtune.job.target import TargetOptions
from envtune.messages import Message
from envtune.model import FaqEntry

_TIME = r"\d{4}-\d\d-\d\d[- T]\d\d:\d\d(?::\d\d(?:[.,]\d{1,6})?)?"


def diagnose(
    logs: Sequence[str] = (),
    host: Optional[Host] = None,
    target: TargetOptions = UNNAMED,
    *,
    catalogue: Optional[Catalogue] = None,
    since: Optional[str] = None,
    until: Optional[str] = None,
    check: bool = True,
    find_fixes: Optional[FindFixes] = None,
) -> DiagnosisReport:
    """Find the known errors in logs, and check their causes on a host.

    Args:
        logs: Files, directories (trees of plog, too), gzip files, or `-` for standard input. None at all: those of
            this user's newest run, where CANN, frameworks and launchers write them.
        host: Where to confirm the causes; None means this machine.
        target: The job that failed, for its Python and its environment.
        catalogue: The known errors and their checks; None means the shipped ones with the site's changes.
        since: Only lines from this time on, as `2024-03-28 10:25` or `2024-03-28 10:25:48`.
        until: Only lines up to this time.
        check: Whether to run the confirming checks at all.
        find_fixes: What plans the fixes of findings, so that `envtune fix` is named only where it would change
            something; None names it whenever a check is about the cause.

    Returns:
        The diagnoses, the likeliest first, with the lines that prove them and the host's findings on each.

    Raises:
        UsageError: A time is malformed, a log does not exist, none is named where none is found or the host is
            recorded, or `target` names something that is not on the host.
        OSError: Standard input is closed.

    Example:
        >>> import envtune
        >>> [d.candidate.entry.id for d in envtune.diagnose(["train.log"]).diagnoses]  # doctest: +SKIP
        ['F08']
    """
    if "-" in logs and sys.stdin is None:
        raise OSError(0, "standard input is closed", "-")
    catalogue = catalogue or load()
    confirming = ConfirmingHost(host, target, catalogue, check=check, find_fixes=find_fixes)
    window = time_window(since, until)
    if logs:
        return diagnose_files(logs, find_logs(logs), catalogue.faq, window, confirming, catalogue)
    if host is not None and not isinstance(host, LocalHost):
        raise UsageError(Message("specify a log: a recorded host contains none"))
    own = find_own_logs(os.environ)
    names = [file.path for file in own.files]
    found = diagnose_files(names, own.files, catalogue.faq, window, confirming, catalogue)
    return replace(found, looked=own.looked)


def diagnose_files(
    names: Sequence[str],
    files: Sequence[LogFile],
    entries: Iterable[FaqEntry],
    window: Optional[TimeWindow] = None,
    host: Optional[ConfirmingHost] = None,
    dictionary: Optional[Catalogue] = None,
) -> DiagnosisReport:
    """Return the diagnosis of logs that have been found, named `names`; without a host nothing is confirmed.

    The `dictionary` of error codes is read only if a code was found; without it codes mean nothing.
    """
    entries = tuple(entries)
    forms = PATTERNS if dictionary is not None else ()
    tables = table_patterns() if dictionary is not None else ()
    patterns = (*patterns_of(entries), *process_patterns(), *forms, *tables)
    found = scan(files, Matcher(patterns), select_prefilter(patterns, files), window)
    found, mentions = without_mentions(found)
    states = states_of(found, dictionary) if found.tables and dictionary is not None else ()
    found = with_states(found, states) if states else found
    resolution = resolve(found, entries, no_environment if host is None else host.environment)
    codes = found_codes(found, dictionary.codes, resolution.processes) if dictionary is not None and found.codes else ()
    resolution = with_codes(resolution, codes, entries) if codes else resolution
    resolution = with_weak_signs(resolution, found)
    result = report_diagnoses(names, found, resolution, host if host is not None and host.check else None, codes)
    if dictionary is not None:
        made = [_without_promise(diagnosis, dictionary) for diagnosis in result.diagnoses]
        result = replace(result, diagnoses=tuple(made))
    lists = (result.diagnoses, result.hints, result.harmless, result.consequences)
    reported = {diagnosis.candidate.entry.id for diagnoses in lists for diagnosis in diagnoses}
    spoken = of_entries(mentions, _entry_finder(entries, dictionary), reported)
    return redacted_report(
        replace(result, target="" if host is None else host.target_options, mentions=spoken, states=states)
    )


def _without_promise(diagnosis: Diagnosis, catalogue: Catalogue) -> Diagnosis:
    """Return the diagnosis with no fix of envtune's where there is none for its checks on any host."""
    checks = diagnosis.candidate.entry.checks
    if diagnosis.fixable is not None or not checks or not catalogue.fixable_checks.isdisjoint(checks):
        return diagnosis
    return replace(diagnosis, fixable=False)


def _entry_finder(entries: Sequence[FaqEntry], dictionary: Optional[Catalogue]) -> Callable[[str], Optional[FaqEntry]]:
    """Return the function that finds the entry of an id, or of an error code."""
    by_id = {entry.id: entry for entry in entries}

    def find(owner: str) -> Optional[FaqEntry]:
        if owner in by_id or dictionary is None:
            return by_id.get(owner)
        code = dictionary.codes.find(owner)
        return None if code is None else by_id.get(code.faq) or code.entry()

    return find


def time_window(since: Optional[str], until: Optional[str]) -> TimeWindow:
    """Return the window between two times such as `2024-03-28 10:25`; raises UsageError if malformed."""
    return TimeWindow(_time(since), _time(until))


def _time(word: Optional[str]) -> Optional[float]:
    if word is None:
        return None
    whole = re.fullmatch(_TIME, word.strip())
    time = time_of(f"{whole[0]}:00" if whole[0].count(":") == 1 else whole[0]) if whole else None
    if time is None and re.search(r"\d([+-]\d\d:?\d\d|Z| ?[A-Z]{3,4})$", word):
        raise UsageError(Message("{word}: log lines have no time zone, so give the time as they do", word=word))
    if time is None:
        raise UsageError(Message("{word}: not a time like 2024-03-28 10:25", word=word))
    return time
