"""The settings of `envtune env`, each with the failing checks that it helps to fix."""

from __future__ import annotations

from envtune.audit import examine
from envtune.catalog import Catalogue, load
from envtune.context import Context
from envtune.model import Outcome
from envtune.resources.environment.path_settings import advice as path_advice
from envtune.resources.environment.profile import Advice, Setting, debug, train
from envtune.resources.environment.render import SOURCES_SCRIPTS
from envtune.resources.environment.simulate import (
    attribute,
    environment_after,
    fixed_checks,
    repeatable,
    unread_scripts,
    values,
    without_unread,
)


def advise(context: Context, profile: str, form: str, catalogue: Catalogue | None = None) -> Advice:
    """Return the settings of a profile (train, debug, none) that the form (`bash`, `docker`, ...) can express."""
    if profile == "none":
        return Advice(())
    advice = debug(context) if profile == "debug" else train(context)
    settings = (*path_advice(context), *advice.settings)
    if form not in SOURCES_SCRIPTS:
        settings, unchecked = without_unread(context, settings)
        settings = values(settings, context.target.environment, environment_after(context, settings))
    else:
        unchecked = tuple(unread_scripts(context, settings).values())
        settings = repeatable(context, settings)
    if profile == "train":
        settings = _with_fixed_checks(context, settings, catalogue or load())
    return advice._replace(settings=settings, unchecked=unchecked)


def _with_fixed_checks(context: Context, settings: tuple[Setting, ...], catalogue: Catalogue) -> tuple[Setting, ...]:
    """Return the settings, each with the checks that fail now, would no longer fail, and that it helps to fix."""
    exporting = [p for p in catalogue.playbooks if any(step.kind == "environment.export" for step in p.steps)]
    fixable = {check for playbook in exporting for check in playbook.fixes}
    failing = [
        check
        for check in catalogue.checks
        if check.id in fixable and any(finding.outcome is Outcome.FAIL for finding in examine(check, context))
    ]
    fixed = fixed_checks(context, failing, environment_after(context, settings), examine)
    return attribute(context, settings, [check for check in failing if check.id in fixed], examine)
