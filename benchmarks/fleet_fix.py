"""A staged fix of many SSH servers on loopback of which some refuse, and one whose controller is killed.

    python benchmarks/fleet_fix.py [HOSTS] [REFUSING]     64 and 5 by default; as root, with sshd, sudo and ansible-core

Says how far the run got, what it cost, and whether `envtune fleet undo` restored every byte; exits with 1 if a host was
changed that should not have been, or was not restored.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Sequence

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from helpers import fleet_fix
from helpers.fleet_fix import SLOW, fixed, killed, run, run_json, state
from helpers.sshd_farm import Farm, farm

FIRST_REFUSING = 19  # hosts before those that refuse: they are in the fourth stage of five


def main(count: int, refusing: int) -> int:
    """Run both, and return the exit status."""
    names = [f"h{number:03d}" for number in range(1, count + 1)]
    bad = set(names[FIRST_REFUSING : FIRST_REFUSING + refusing])
    wrong = stopped(names, bad)
    wrong += interrupted(names[: max(12, count // 4)])
    for line in wrong:
        print(f"WRONG: {line}")
    return 1 if wrong else 0


def stopped(names: Sequence[str], bad: set[str]) -> list[str]:
    """Fix hosts of which some refuse."""
    print(f"{len(names)} hosts of which {len(bad)} refuse")
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        folder.chmod(0o755)
        targets = [fleet_fix.host(folder, name, refuses=name in bad) for name in names]
        with farm(folder, targets) as servers:
            before = state(folder, names)
            words = common(folder, names)
            began, used = time.monotonic(), seconds()
            _, report = run_json(servers, "fix", folder / "fleet.db", *words, "--yes")
            show("fix", began, used)
            return check_stop(servers, folder, names, bad, before, report)


def check_stop(servers: Farm, folder: Path, names: Sequence[str], bad: set[str], before: Any, report: Any) -> list[str]:
    """Compare what the run says with what is on the hosts, and undo it."""
    rows = {row["host"]: row["state"] for row in report["hosts"]}
    reached = max((row["stage"] for row in report["hosts"] if row["state"] != "planned"), default=-1)
    print(
        f"  stages of {[len(stage) for stage in report['stages']]} hosts; {reached + 1} were begun: {report['stopped']}"
    )
    print(f"  {sorted((state, list(rows.values()).count(state)) for state in set(rows.values()))}")
    wrong = []
    beyond = [host for stage in report["stages"][reached + 1 :] for host in stage]
    changed = [name for name in names if rows.get(name) == "changed"]
    if fixed(folder, names) != changed:
        wrong.append(f"changed on the hosts: {fixed(folder, names)}; said: {changed}")
    if any(state(folder, [name])[name] != before[name] for name in (*beyond, *bad)):
        wrong.append("a host that refuses, or of a stage that was not begun, is not as it was")
    if report["stopped"] is None or not beyond:
        wrong.append("it did not stop")
    began, used = time.monotonic(), seconds()
    status, _ = run_json(servers, "undo", folder / "fleet.db", report["run"], "--yes")
    show("undo", began, used)
    if status or state(folder, names) != before:
        wrong.append("not every byte is as it was after undo")
    return wrong


def interrupted(names: Sequence[str]) -> list[str]:
    """Kill the controller, once alone and once with Ansible, while it waits for a host of the fourth stage."""
    wrong = []
    for ansible in (False, True):
        print(f"{len(names)} hosts, controller killed{' with Ansible' if ansible else ''}")
        slow = names[4]
        with tempfile.TemporaryDirectory() as text:
            folder = Path(text)
            folder.chmod(0o755)
            targets = [fleet_fix.host(folder, name, python=SLOW if name == slow else "") for name in names]
            with farm(folder, targets) as servers:
                before = state(folder, names)
                words = common(folder, names)
                killed(servers, folder, folder / "fleet.db", slow, *words, "--yes", ansible=ansible)
                run(servers, "fix", folder / "fleet.db", *words, "--check")
                _, runs = run_json(servers, "undo", folder / "fleet.db")
                said = sorted(row["host"] for row in runs[0]["hosts"] if row["state"] == "changed")
                states = sorted({row["state"] for row in runs[0]["hosts"]})
                print(f"  changed: {len(fixed(folder, names))}; the next run says {len(said)}, states {states}")
                if said != fixed(folder, names) or set(states) - {"changed", "planned", "unchanged"}:
                    wrong.append(f"changed on the hosts: {fixed(folder, names)}; said: {said}, {states}")
                status, _ = run_json(servers, "undo", folder / "fleet.db", runs[0]["run"], "--yes")
                if status or state(folder, names) != before:
                    wrong.append("not every byte is as it was after undo")
    return wrong


def common(folder: Path, names: Sequence[str]) -> list[str]:
    """The command line of a fix of these hosts."""
    site = str(fleet_fix.catalogue(folder))
    return ["SITE901", "-w", ",".join(names), "--become", "--soak", "0", "--timeout", "120", "--catalog", site]


def seconds() -> float:
    """CPU seconds of the programs that were started."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def show(what: str, began: float, used: float) -> None:
    print(f"  {what}: {time.monotonic() - began:.0f} s, {seconds() - used:.1f} s of processor time of the controller")


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    raise SystemExit(main(*(numbers + [64, 5][len(numbers) :])))
