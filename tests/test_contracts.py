"""What envtune 0.1.0 at b2d3f6d recorded and said: the same snapshot still gets the same report and the same plan.

The snapshots in tests/contracts were written by that version, and so were the answers beside them, of which only the
texts for people are kept up to date, and two claims that were wrong: ENV008 for later torch_npu, and the plan of
910a-ubuntu1804-mixed, which sourced a script that its snapshot does not hold, as if that fixed NET001. A later version
may add keys and checks; it may not change what a script, a ticket or a saved plan relies on.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Iterator

import pytest
from helpers.command_line import run
from helpers.examples import ROOT
from helpers.rows import sampled

from envtune.context.registry import current_name

# Actions that are generic, and no longer what the shipped playbooks use.
MORE_SPECIAL = {"sysfs.write": "cpu.set_governor", "service.enable": "cpu.set_governor_at_boot"}
CONTRACTS = Path(__file__).parent / "contracts"
# playbook -> what its step `python.install` was given
INSTALLS = {"install-pillow-simd": "pillow", "keep-one-opencv": "opencv", "install-te-of-cann": "cann-wheels"}
HOSTS = sorted(path.name[: -len(".tar.gz")] for path in CONTRACTS.glob("*.tar.gz"))


def answered(*words: str) -> tuple[int, dict[str, Any]]:
    """Exit status and JSON of one call."""
    done = run(*words, "--format", "json")
    assert done.exit_code in (0, 1, 3), done.stderr
    return done.exit_code, json.loads(done.stdout)


def kept(now: Any, then: Any, where: str = "") -> None:
    """Everything that was there is there and the same; a mapping may hold further keys."""
    if isinstance(then, dict):
        assert isinstance(now, dict) and set(then) <= set(now), f"{where}: {set(then) - set(now)} is gone"
        for key, value in then.items():
            kept(now[key], value, f"{where}.{key}")
    elif isinstance(then, list):
        assert len(now) == len(then), where
        for number, value in enumerate(then):
            kept(now[number], value, f"{where}[{number}]")
    else:
        assert now == then, where


def as_it_was(name: str) -> Any:
    return json.loads((CONTRACTS / name).read_text("utf-8"))


def checks_of(host: str) -> list[str]:
    """The checks that there were then."""
    return sorted({finding["id"] for finding in as_it_was(f"{host}.en.json")["findings"]})


@pytest.mark.parametrize("lang", sampled(["zh", "en"], 2))
@pytest.mark.parametrize("host", sampled(HOSTS, 2))
def test_a_recorded_host_is_judged_as_before(host: str, lang: str) -> None:
    then = as_it_was(f"{host}.{lang}.json")
    words = ("--snapshot", str(CONTRACTS / f"{host}.tar.gz"), "--lang", lang, "--strict", "--schema", "1")
    code, now = answered("check", *words, "--select", ",".join(checks_of(host)))
    kept(now, then["report"], "report")
    kept(now["findings"], then["findings"], "findings")
    assert code == then["exit"]


@pytest.mark.parametrize("host", sampled(HOSTS, 2))
def test_a_recorded_host_gets_the_same_plan(host: str) -> None:
    then = as_it_was(f"{host}.plan.json")
    own = checks_of(host)  # a later version has further checks, whose changes are in the plan as well
    _, now = answered("fix", "--snapshot", str(CONTRACTS / f"{host}.tar.gz"), "--lang", "en")
    for key in ("changes", "skipped"):
        now[key] = [row for row in now[key] if row["finding"] in own]
    for number, change in enumerate(now["changes"], 1):
        change["id"] = f"C{number:02}"
    kept(now, then["plan"], "plan")
    for change in then["changes"]:
        action, what = change["action"], INSTALLS.get(change["playbook"])  # a saved plan may use the former name
        change["action"] = MORE_SPECIAL.get(action) or current_name(action, {"what": what})
    kept(now["changes"], then["changes"], "changes")
    told = {(row["finding"], row["subject"]) for row in then["skipped"]}  # a later version tells of further subjects
    kept([row for row in now["skipped"] if (row["finding"], row["subject"]) in told], then["skipped"], "skipped")


def statements(schema: Any, place: str = "") -> Iterator[str]:
    """Everything a JSON Schema says, a line each; what is only for people is left out."""
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key not in ("description", "title"):
                yield from statements(value, f"{place}/{key}")
    elif isinstance(schema, list):
        scalars = all(not isinstance(item, (dict, list)) for item in schema)
        for number, item in enumerate(schema):
            yield from statements(item, place if scalars else f"{place}[{number}]")
    else:
        yield f"{place}={schema}"


@pytest.mark.parametrize("path", sorted((CONTRACTS / "schemas").glob("*.json")), ids=lambda path: path.stem)
def test_a_schema_only_gains(path: Path) -> None:
    """What was the only form may be one of several; what an author had to write may be left out."""
    then, now = (json.loads(p.read_text("utf-8")) for p in (path, ROOT / "docs" / "schema" / path.name))
    stated = set(statements(now))
    alternatives = {re.sub(r"/anyOf\[\d+\]", "", statement) for statement in stated}
    lost = set(statements(then)) - stated - alternatives
    if path.stem in ("check", "faq", "playbook"):  # what we read; of what we print everything stays
        lost = {statement for statement in lost if "/required=" not in statement}
    assert lost == set()
