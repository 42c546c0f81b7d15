"""Run the checks of this host, or of a recorded one, for a verdict about speed (`profile` and `observe`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Callable, List, Optional

from envtune.cli import options

if TYPE_CHECKING:
    from envtune.job.target import TargetOptions
    from envtune.model import Report


def checking(recorded: Optional[Path], catalog: Optional[List[Path]], lang: str) -> Callable[[TargetOptions], Report]:
    """Return what checks the host for a job; a recorded host is read within limits."""
    from envtune.audit import check_host
    from envtune.audit.limited import check_limited
    from envtune.catalog import select
    from envtune.cli.check import find_fixes
    from envtune.context.open import open_host
    from envtune.model import Severity

    catalogue = options.load_catalogue(catalog, lang)
    checks = select(catalogue.checks, (), (), (), Severity.INFO)
    fixes = find_fixes(catalogue)

    def check(target: TargetOptions) -> Report:
        host = open_host(recorded)
        if host.live:
            return check_host(host, target, checks, None, catalogue.expectations, fixes)
        return check_limited(host, target, checks, None, catalogue.expectations, lambda text: None, fixes)

    return check
