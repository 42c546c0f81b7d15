"""A saved plan on the host it was made for, on that host some time later, and on another one."""

from __future__ import annotations

import base64
import copy
import json
from functools import partial
from pathlib import Path
from typing import Any, Mapping, Optional

import pytest
from helpers.examples import ROOT, shared_host

from envtune.catalog import Catalogue, load
from envtune.catalog.examples import example_host
from envtune.context.open import open_host
from envtune.errors import PlanError
from envtune.fix.document import load_plan, render
from envtune.fix.plan import named_options
from envtune.fix.prepare import PreparedFix, prepare
from envtune.fix.rebuild import prepare_saved
from envtune.fix.selection import choose_checks
from envtune.host import Host

RESERVED = "/proc/sys/net/ipv4/ip_local_reserved_ports"
OWN = "/etc/sysctl.d/95-envtune.conf"
FILES: Mapping[str, Any] = {
    "/usr/local/Ascend/nnae": {"dir": []},  # it is to train
    "/etc/machine-id": "0123456789abcdef0123456789abcdef\n",
    "/proc/sys/net/ipv4/ip_local_port_range": "32768\t60999\n",
    RESERVED: "\n",
    "/etc/sysctl.d/20-site.conf": "vm.swappiness = 10\n",
}


def host(files: Optional[Mapping[str, Any]] = None, **more: Any) -> Host:
    """A host whose HCCL ports are not reserved."""
    every = {path: text for path, text in {**FILES, **(files or {})}.items() if text is not None}
    return example_host({"like": "bare", "files": every, "interfaces": [], "listeners": [], **more}, shared_host)


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load()


def planned(on: Host, catalogue: Catalogue, *words: str, lang: str = "en", **named: Any) -> dict[str, Any]:
    """The plan as it is saved."""
    target, options = named_options(on, named)
    words = words if any(words) else () if words else ("NET005",)  # "": all of them
    made = prepare(on, target, choose_checks(catalogue, words, ()), catalogue, options)
    data: dict[str, Any] = json.loads(render(made.plan, lang))
    return data


def again(data: Any, on: Host, catalogue: Catalogue) -> PreparedFix:
    return prepare_saved(on, load_plan(json.dumps(data)), catalogue)


def refusal(data: Any, on: Host, catalogue: Catalogue) -> str:
    with pytest.raises(PlanError) as caught:
        again(data, on, catalogue)
    assert caught.value.to("zh") != str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_same_host_gives_the_same_plan(catalogue: Catalogue, lang: str) -> None:
    saved = planned(host(), catalogue, lang=lang)
    made = again(saved, host(), catalogue)
    assert [change.target for change in made.plan.changes] == ["net.ipv4.ip_local_reserved_ports", OWN]
    assert json.loads(render(made.plan, lang))["changes"] == saved["changes"]


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted((ROOT / "tests/contracts").glob("*.tar.gz")), ids=lambda path: path.name)
def test_every_recorded_host_gives_the_same_plan(catalogue: Catalogue, path: Path) -> None:
    saved = planned(open_host(path), catalogue, "", lang="zh", peers=("10.0.0.2",))
    assert saved["changes"] or path.name.startswith(("a3-", "container-"))  # there nothing can be changed
    assert json.loads(render(again(saved, open_host(path), catalogue).plan, "zh"))["changes"] == saved["changes"]


# What somebody did to the host after the plan was made, and what the refusal names.
LATER = {
    "another file sets it, too": (
        {"/etc/sysctl.d/50-site.conf": "net.ipv4.ip_local_reserved_ports = 8080\n"},
        "changes[1].",
    ),
    "a file that wins": (
        {"/etc/sysctl.d/99-site.conf": "net.ipv4.ip_local_reserved_ports = 8080\n"},
        "changes[1].",
    ),
    "its own file": ({OWN: "# mine\n"}, "changes[1].before"),
    "the running value": ({RESERVED: "8080\n"}, "changes[0].before"),
    "another machine of that name": ({"/etc/machine-id": "f" * 32 + "\n"}, "machine: the plan was made on another"),
    "no machine id": ({"/etc/machine-id": None}, "machine: the plan was made on another"),
}


@pytest.mark.parametrize("name", LATER)
def test_what_changed_since_is_named(catalogue: Catalogue, name: str) -> None:
    files, words = LATER[name]
    found = refusal(planned(host(), catalogue), host(files), catalogue)
    assert words in found and ("make a new plan" in found or "machine id" in found), found


def test_what_is_about_something_else_does_not_matter(catalogue: Catalogue) -> None:
    on = host({"/etc/sysctl.d/50-site.conf": "vm.swappiness = 1\n"})
    assert len(again(planned(host(), catalogue), on, catalogue).plan.changes) == 2


def test_a_plan_of_another_host_is_refused(catalogue: Catalogue) -> None:
    saved = planned(host(), catalogue)
    assert "the plan was made on elsewhere" in refusal({**saved, "host": "elsewhere"}, host(), catalogue)


def test_what_is_so_already_leaves_nothing_to_do(catalogue: Catalogue) -> None:
    saved = planned(host(), catalogue)
    text = "net.ipv4.ip_local_reserved_ports = 60000-60031\n"
    on = host({RESERVED: "60000-60031\n", OWN: text})
    made = again(saved, on, catalogue)
    assert made.plan.changes == () and {finding.outcome.value for finding in made.findings} == {"pass"}


def test_changes_may_be_left_out_renumbered_and_reordered(catalogue: Catalogue) -> None:
    saved = planned(host(), catalogue)
    first, second = saved["changes"]
    part = again({**saved, "changes": [second]}, host(), catalogue)
    assert [(change.id, change.target) for change in part.plan.changes] == [("C02", OWN)]
    turned = [{**second, "id": "C07", "note": "anything"}, first]
    made = again({**saved, "changes": turned}, host(), catalogue)
    assert [(change.id, change.scope) for change in made.plan.changes] == [("C01", "live"), ("C07", "boot")]
    assert all(change.note is None or change.note.en != "anything" for change in made.plan.changes)


def test_one_change_twice_is_refused(catalogue: Catalogue) -> None:
    saved = planned(host(), catalogue)
    saved["changes"].append({**copy.deepcopy(saved["changes"][0]), "id": "C03"})
    assert "changes[2] (C03, NET005)" in refusal(saved, host(), catalogue)


def test_what_was_named_is_named_again(catalogue: Catalogue) -> None:
    """Peers, wheels and the like are in the file; what is named now goes before it, and has to give the same."""
    peers = planned(host(), catalogue, "NET", peers=["10.0.0.2"], wheels="/opt/wheels")
    assert peers["options"] == {"peers": ["10.0.0.2"], "wheels": "/opt/wheels"}
    made = again(peers, host(), catalogue)
    assert made.target.peers == ("10.0.0.2",) and made.plan.options["wheels"] == "/opt/wheels"
    named = prepare_saved(host(), load_plan(json.dumps(peers)), catalogue, {"peers": ("10.0.0.3",)})
    assert named.target.peers == ("10.0.0.3",)


def test_a_plan_holds_no_secret_of_the_files_it_changes(catalogue: Catalogue) -> None:
    """It is passed on; what is compared and built again is the same without them."""
    lines = (
        "export DB_PASSWORD=Hx7pQ2mZ9k",
        "export TASK_QUEUE_ENABLE=0",
        "mysql -uroot -pRk4wT8sB3n",
        "python3 train.py",
    )
    for name, key in (("/home/t/train.sh", "script"), ("/home/t/job.env", "env_file")):
        text = "\n".join(line if key == "script" else line.replace("export ", "") for line in lines) + "\n"
        on = partial(host, {name: text}, like=["npu-910a-8", "torch150"])
        saved = planned(on(), catalogue, "ENV", **{key: name})
        (change,) = (change for change in saved["changes"] if change["target"] == name)
        (operation,) = change["operations"]
        everything = json.dumps(saved) + base64.b64decode(operation["content"]).decode()
        assert "Hx7pQ2mZ9k" not in everything and "Rk4wT8sB3n" not in everything and "redacted" in change["before"]
        made = again(saved, on(), catalogue)
        (own,) = (change for change in made.plan.changes if change.target == name)
        assert "Hx7pQ2mZ9k" in base64.b64decode(own.operations[0]["content"]).decode()  # what is written is whole


def test_an_earlier_version_s_plan_is_built_again_from_what_it_says(catalogue: Catalogue) -> None:
    saved = planned(host(), catalogue)
    for name in ("machine", "options", "checks"):
        del saved[name]
    assert len(again(saved, host(), catalogue).plan.changes) == 2
    saved["changes"][0]["action"] = "sysfs.write"  # what did it then
    assert "make a new plan" in refusal(saved, host(), catalogue)


def test_a_playbook_of_the_site_needs_its_catalogue(catalogue: Catalogue) -> None:
    saved = planned(host(), catalogue)
    saved["changes"][1]["playbook"] = "site-ports"
    found = refusal(saved, host(), catalogue)
    assert "changes[1]: no playbook site-ports here" in found and "--catalog" in found


def test_a_difference_is_shown_where_it_is(catalogue: Catalogue) -> None:
    """Of a long text only the place where it differs, on one line and without what rules a terminal."""
    saved = planned(host(), catalogue)
    saved["changes"][1]["after"] += "\x1b[2Jkernel.core_pattern = |/tmp/x\n"
    row = refusal(saved, host(), catalogue).splitlines()[1]
    assert row.startswith("  changes[1].after (C02): …") and "core_pattern" in row
    assert "\x1b" not in row and len(row) < 220
    saved["changes"][0]["operations"][0]["\u202eenv\x1b"] = "\u202e"
    assert refusal(saved, host(), catalogue).splitlines()[1].isprintable()


def test_many_differences_are_counted(catalogue: Catalogue) -> None:
    saved = planned(host(), catalogue)
    saved["changes"][0]["operations"] += [{}] * 100
    rows = refusal(saved, host(), catalogue).splitlines()
    assert len(rows) == 22 and rows[-1] == "  and 80 more"


def test_what_this_host_needs_besides_is_named(catalogue: Catalogue) -> None:
    """A part of a plan is carried out as it is, and nobody takes it for all that is to be done."""
    saved = planned(host(), catalogue)
    part = again({**saved, "changes": saved["changes"][:1]}, host(), catalogue).plan
    assert [(one.finding, str(one.reason)) for one in part.skipped] == [
        ("NET005", f"{OWN}: proposed here, but not in the plan file")
    ]
    assert again(saved, host(), catalogue).plan.skipped == ()


def test_a_file_that_would_win_is_named(catalogue: Catalogue) -> None:
    on = host({"/etc/sysctl.d/zz-site.conf": "net.ipv4.ip_local_reserved_ports = 8080\n"})
    assert "/etc/sysctl.d/zz-site.conf:1 sets" in refusal(planned(host(), catalogue), on, catalogue)


def deep(levels: int) -> list[Any]:
    nested: list[Any] = []
    for _ in range(levels):
        nested = [nested]
    return nested


NO_PLANS = {
    "empty": ("", "the file is empty"),
    "blank": (" \n", "the file is empty"),
    "deep": ("[" * 100_000, "nested too deeply"),
    "deep and closed": (json.dumps({"changes": deep(500)}), "nested too deeply"),
    "rather deep": (json.dumps({"changes": deep(40)}), "nested too deeply"),
    "a long number": ('{"schema": ' + "9" * 5000 + "}", "a number of 5000 digits"),
    "half a character": (json.dumps({"schema": "\ud800"}), "half a character"),
    "text": ("What would be changed", "--format json"),
    "many values": ("[" + "[]," * 200_000 + "[]]", "more than 200000 values"),
}


@pytest.mark.parametrize("name", NO_PLANS)
def test_what_no_plan_could_be_is_told_as_such(name: str) -> None:
    text, words = NO_PLANS[name]
    with pytest.raises(PlanError) as caught:
        load_plan(text)
    assert words in str(caught.value) and "codec" not in str(caught.value) and "recursion" not in str(caught.value)


@pytest.mark.parametrize("member", ["id", "finding", "playbook", "action", "view", "safety", "l\u202eive\n$ sudo x"])
def test_a_refusal_is_one_line_that_rules_no_terminal(catalogue: Catalogue, member: str) -> None:
    saved = planned(host(), catalogue)
    saved["changes"][0][member] = "l\u202eive\n$ sudo sh\x1b[2J"
    assert refusal(saved, host(), catalogue).isprintable()
