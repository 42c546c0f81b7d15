"""The settings of `envtune env`, each with the failing checks that it is seen to fix."""

from __future__ import annotations

from envtune.audit import examine
from envtune.catalog import Catalogue, load
from envtune.context import Context
from envtune.job.target import JobEnvironment
from envtune.model import Outcome
from envtune.resources.environment.path_settings import advice as path_advice
from envtune.resources.environment.profile import Advice, debug, train
from envtune.resources.environment.render import SOURCES_SCRIPTS
from envtune.resources.environment.simulate import cured, environment_after, values


def advise(context: Context, profile: str, form: str, catalogue: Catalogue | None = None) -> Advice:
    """Return the settings of a profile (`train` or `debug`) in what the form can express (`bash`, `docker`, ...)."""
    advice = debug(context) if profile == "debug" else train(context)
    settings = (*path_advice(context), *advice.settings)
    after = environment_after(context, settings)
    if form not in SOURCES_SCRIPTS:
        settings = values(settings, after)
    claimed = {check for setting in settings for check in setting.checks}
    fixed = _fixed(context, claimed, after, catalogue or load()) if profile == "train" else set()
    kept = (setting._replace(checks=tuple(c for c in setting.checks if c in fixed)) for setting in settings)
    return advice._replace(settings=tuple(kept))


def _fixed(context: Context, claimed: set[str], after: JobEnvironment, catalogue: Catalogue) -> set[str]:
    """Of the checks named those that fail now and would not fail then."""
    failing = [
        check
        for check in catalogue.checks
        if check.id in claimed and any(finding.outcome is Outcome.FAIL for finding in examine(check, context))
    ]
    return set(cured(context, failing, after))
