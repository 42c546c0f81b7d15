"""Skeletons of new checks, playbooks and FAQ entries, which load without changes: `envtune new`.

A check starts from the example of its probe (envtune/data/examples/probes), a playbook from that of its step, so that
both contain everything such an entry needs. What the user has not named gets a comment.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Mapping, Optional, Sequence

from envtune.catalog import forms, schema
from envtune.catalog.families import folders_of
from envtune.catalog.layers import why_untrusted
from envtune.catalog.reference import PLACEHOLDER, REQUIRED, Reference, example_text, reference
from envtune.errors import UsageError
from envtune.messages import Message
from envtune.model import Check
from envtune.records import NamedTuple

CHECK_PROBE = "sysctl.value"  # of a check if none is named
# probe -> the step that sets what it reads, and the arguments the two share
STEPS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "sysctl.value": ("sysctl.set", ("key",)),
    "sysctl.boot": ("sysctl.set", ("key",)),
    "service.enabled": ("service.enable", ("unit",)),
    "environment.variable": ("environment.export", ()),
}


class Skeleton(NamedTuple):
    """A file to be written; `path` is relative to the catalog's directory."""

    path: Path
    text: str


def new_check(id_: str, name: str, probe: str) -> Skeleton:
    """Return a check of that id which reads `probe`; raises KeyError if there is no such probe."""
    _require_form(id_, schema.ID, "SITE101")
    words = reference("probes", probe)
    text = example_text("probes", probe)
    if text is None:
        text = _check_without_example(probe, words)
    name = name or f"{probe.replace('.', '-').replace('_', '-')}-{id_.lower()}"
    _require_form(name, forms.NAME, "max-map-count-too-low")
    text = _with_head(text, id_, name)
    folder = folders_of(id_.rstrip("0123456789"))[0]
    return Skeleton(Path("checks", folder, f"{id_}-{name}.yaml"), text)


def _given(words: Reference) -> str:
    """Return the arguments that must be given, as YAML, with values to be changed."""
    return ", ".join(f"{row.name}: {row.placeholder}" for row in words.arguments if row.default is REQUIRED)


def _check_without_example(probe: str, words: Reference) -> str:
    """Return a check without examples, of a probe that only shipped checks use."""
    given = _given(words)
    return (
        f"id: {PLACEHOLDER}\nname: change-this\ntitle: What is wrong\nseverity: medium\n"
        f"probe: {{{probe}: {{{given}}}}}\nexpect: {{eq: change-this}}\nremedy: How to fix it.\n"
    )


def _with_head(text: str, id_: str, name: str) -> str:
    text = re.sub("(?m)^id: .*$", f"id: {id_}", text, count=1)
    return re.sub("(?m)^name: .*$", f"name: {name}", text, count=1)


def new_faq(id_: str, name: str, check: Optional[str]) -> Skeleton:
    """Return an FAQ entry of that id, which names `check` as making its cause likelier."""
    _require_form(id_, schema.FAQ_ID, "S01")
    name = name or f"error-{id_.lower()}"
    _require_form(name, forms.NAME, "no-memory-map-left")
    text = _with_head(example_text(".", "faq") or "", id_, name)
    if check is None:
        text = re.sub(r"(?m)^favours:\n  - check: .*\nnamed_by: .*\n", "", text)
    else:
        text = text.replace(PLACEHOLDER, check)
    return Skeleton(Path("checks", "faq", f"{id_}-{name}.yaml"), text)


def new_playbook(id_: str, check: Check, step: str) -> Skeleton:
    """Return a playbook that fixes `check` with `step`, by default the one that sets what the check's probe reads."""
    _require_form(id_, forms.NAME, "raise-max-map-count")
    fitting, shared = STEPS.get(check.probe, ("instructions", ()))
    step = step or fitting
    text = example_text("steps", step)
    if text is None:
        given = _given(reference("steps", step))
        text = (
            f"id: {id_}\ntitle: How it is fixed\nfixes: [{PLACEHOLDER}]\nsafety: confirm\ndisruption: none\n"
            f"steps:\n  - {step}: {{{given}}}\n"
        )
    if step == fitting:
        text = _with_arguments(text, step, {key: check.arguments[key] for key in shared}, _wanted(check))
    text = re.sub("(?m)^id: .*$", f"id: {id_}", text, count=1).replace(PLACEHOLDER, check.id)
    return Skeleton(Path("playbooks", folders_of(check.family)[0], f"{id_}.yaml"), text)


def _with_arguments(text: str, step: str, shared: Mapping[str, Any], wanted: Optional[str]) -> str:
    """Return the step with the arguments of the check's probe and, for a kernel parameter, the value it expects."""
    if step == "sysctl.set" and wanted is not None:
        shared = {**shared, "value": wanted}
    for key, value in shared.items():
        text = re.sub(rf"\b{key}: [^,}}]+", lambda _, k=key, v=value: f"{k}: {_scalar(v)}", text)  # type: ignore[misc]
    return text


def _wanted(check: Check) -> Optional[str]:
    """Return the value that meets the expectation of a check, if it names one."""
    from envtune import expect

    value = expect.only(check.expect, "eq")
    for matcher in ("ge", "le"):
        value = expect.only(check.expect, matcher) if value is None else value
    return None if value is None else expect.value_text(value)


def _scalar(value: Any) -> str:
    text = str(value)
    return text if re.fullmatch(r"[\w./@+-]+", text) else json.dumps(text)


def _require_form(word: str, pattern: str, form: str) -> None:
    if not re.fullmatch(pattern, word):
        raise UsageError(Message("{value}: must look like {form}", value=word, form=form))


def place_of(skeleton: Skeleton, directory: Path) -> Path:
    """Return where in a catalog's directory the file belongs; raises UsageError if one of its names is taken.

    In a directory that contains the checks itself (without `checks/`), a check or an FAQ entry is placed accordingly.
    As root, a directory that the loader would refuse because somebody else could change it is refused.
    """
    problem = why_untrusted(str(directory))
    if problem is not None:
        raise UsageError(Message("{reason}; refused when run as root: chown root and chmod go-w", reason=problem))
    parts = skeleton.path.parts
    if _holds_checks_itself(directory):
        if parts[0] == "playbooks":
            reason = Message("{directory} contains checks: move them to {directory}/checks", directory=directory)
            raise UsageError(reason)
        parts = parts[1:] if parts[1] == "faq" else parts[-1:]
    path = directory.joinpath(*parts)
    if path.exists() or path.is_symlink():
        raise UsageError(Message("{path} already exists", path=path))
    same = sorted(path.parent.glob(f"{path.name.split('-')[0]}-*.yaml")) if parts[0] != "playbooks" else ()
    if same:
        raise UsageError(Message("the id {id} is already used by {there}", id=path.name.split("-")[0], there=same[0]))
    return path


def _holds_checks_itself(directory: Path) -> bool:
    inside = [path for path in directory.glob("*.yaml") if path.is_file()]
    return bool(inside) and not (directory / "checks").is_dir() and not (directory / "playbooks").is_dir()


def the_only_check(checks: Sequence[Check]) -> Check:
    """Return the check that a new playbook is for if none is named; raises UsageError unless there is exactly one."""
    if len(checks) == 1:
        return checks[0]
    raise UsageError(Message("specify the check that it fixes: --fixes ID"))
