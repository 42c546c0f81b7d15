"""Changed plan files, one after the other, for the command line of one process; run by tests/fix/test_plan_fuzz.py.

`python -m helpers.plan_fuzz FOLDER` inside of namespaces, under strace. FOLDER holds `files/*.json` and afterwards
`outcomes.json`: what came of each. `open` calls of paths that do not exist mark in the trace where a part begins.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import json
import os
import random
import sys
from pathlib import Path
from typing import Any, Iterator

SEED = 20250311
# What a file may say of everything; whatever begins to happen by it has this word in it.
EVIL = "/tmp/evil-of-a-plan"
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 1e308, 1 << 70, "", "0", "present", "absent", [], {}, [[]], {"": {}},
    EVIL, f"{EVIL}/test", f"{EVIL}/nft", "/etc/cron.d/envtune", "/root/.bashrc", "safe", "none", "job",
    ["sh", "-c", f"touch {EVIL}"], {"argv": [f"{EVIL}/test"]}, {"LD_PRELOAD": f"{EVIL}.so"}, {"PATH": EVIL},
    f"\x1b[31m{EVIL}", f"\u202e{EVIL}", "a\nb", "x" * 5000, "../" * 9 + "etc/shadow",
)  # fmt: skip
MEMBERS: tuple[tuple[str, Any], ...] = (
    ("env", {"LD_PRELOAD": f"{EVIL}.so"}), ("env", {"PYTHONPATH": EVIL}), ("undo", {"argv": ["sh", "-c", EVIL]}),
    ("check", {"argv": [f"{EVIL}/test", "-e", "/"]}), ("given", {"argv": [EVIL], "pattern": ".", "digest": "x"}),
    ("census", {"argv": [EVIL], "pattern": "(.)"}), ("mode", 0o4755), ("wheels", [EVIL]), ("timeout", 1), ("x", EVIL),
)  # fmt: skip


def spots(data: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of a document: the mapping or list, and the key."""
    for key in list(data) if isinstance(data, dict) else range(len(data)):
        yield data, key
        if isinstance(data[key], (dict, list)):
            yield from spots(data[key])


def mutated(plan: Any, random_: random.Random) -> str:
    """Return a plan file that somebody changed in one to three places, or broke."""
    data = copy.deepcopy(plan)
    for _ in range(random_.choice((1, 1, 2, 3))):
        _change(data, random_)
    text = json.dumps(data)
    if random_.random() < 0.08:
        place = random_.randrange(len(text))
        text = text[:place] + random_.choice(("", "\0", '"', "\\ud800", "[" * 2000, "NaN,")) + text[place + 1 :]
    return text


def _change(data: Any, random_: random.Random) -> None:
    places = list(spots(data))
    if random_.random() < 0.7:  # most of what matters is in the operations
        places = [spot for change in data.get("changes") or [] if isinstance(change, dict) for spot in spots(change)]
    if not places:
        return
    holder, key = random_.choice(places)
    kind = random_.randrange(6)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(random_.choice((*VALUES, holder[key]))))
    elif kind == 2 and isinstance(holder, dict):
        name, value = random_.choice(MEMBERS)
        holder[name] = copy.deepcopy(value)
    elif kind == 3:
        other, place = random_.choice(places)
        holder[key], other[place] = copy.deepcopy((other[place], holder[key]))
    else:
        holder[key] = _other(holder[key], random_)


def _other(value: Any, random_: random.Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, str) and random_.random() < 0.6:
        return random_.choice((value.upper(), f"{EVIL}/{value}", f"{value} {EVIL}", "-" + value, value[:-1]))
    return copy.deepcopy(random_.choice(VALUES))


def says_the_same(text: str, plan: Any) -> bool:
    """Whether a file names changes of the plan and nothing else about them."""

    def rows(data: Any) -> list[str]:
        free = ("id", "note")
        return [json.dumps({k: v for k, v in row.items() if k not in free}, sort_keys=True) for row in data["changes"]]

    known = rows(plan)
    try:
        return all(row in known for row in rows(json.loads(text)))
    except (ValueError, KeyError, TypeError, AttributeError):
        return False


def mark(name: str) -> None:
    with contextlib.suppress(OSError):
        os.open(f"/mark-{name}", os.O_RDONLY)


def main(folder: Path) -> None:
    """Make the plan, have every file refused, then carry out the one that nobody changed."""
    from typer import testing

    from envtune.cli import options
    from helpers.command_line import run

    loaded = options.load_catalogue(None, "en")  # the same for every file
    options.load_catalogue = lambda *_: loaded
    testing._get_command = functools.cache(testing._get_command)
    plan = ("fix", "NET004", "NET005", "--peer", "10.77.0.1", "--format", "json")
    run(*plan)  # whatever is imported, compiled and cached is so from now on
    mark("plan")
    (made := folder / "plan.json").write_text(run(*plan).stdout)
    rows = {}
    hostile = json.loads((folder / "hostile.json").read_text())
    texts = {f"hostile-{name}": text for name, text in written(json.loads(made.read_text()), hostile).items()}
    random_ = random.Random(SEED)
    original = json.loads(made.read_text())
    without_commands = {**original, "checks": ["NET005"], "changes": original["changes"][1:]}
    for number in range(int(os.environ["MUTATIONS"])):  # nft is asked for one in four only: that takes long
        texts[f"random-{number}"] = mutated(without_commands if number % 4 else original, random_)
    (folder / "files").mkdir()
    for name, text in texts.items():
        (folder / "files" / name).write_text(text)
    mark("refused")
    for name in texts:
        consent = ("--yes", "--yes-confirm") if name.startswith("hostile") else ()
        done = run("fix", "--plan", str(folder / "files" / name), "--apply", *consent)
        rows[name] = (done.exit_code, done.stdout, done.stderr, repr(done.exception))
    mark("consent")
    done = run("fix", "--plan", str(made), "--apply", "--yes", "--yes-confirm")
    mark("end")
    rows["plan"] = (done.exit_code, done.stdout, done.stderr, repr(done.exception))
    rows["undo"] = (run("undo").exit_code, "", "", "")
    (folder / "outcomes.json").write_text(json.dumps(rows))


def written(plan: Any, hostile: Any) -> dict[str, str]:
    """Return the files of tests/fix/hostile_plans.yaml, made from the plan of this host."""
    known = {"rule": "changes/0", "knob": "changes/1", "file": "changes/2"}
    found: dict[str, str] = {}
    for row in hostile:
        data = copy.deepcopy(plan)
        for way, value in row["set"].items():
            first, _, rest = way.partition("/")
            *steps, last = f"{known.get(first, first)}/{rest}".rstrip("/").split("/")
            holder: Any = data
            for step in steps:
                holder = holder[int(step) if isinstance(holder, list) else step]
            if value == "(gone)":
                del holder[last]
            elif last == "+":
                holder.append(value)
            else:
                holder[int(last) if isinstance(holder, list) else last] = value
        found[row["name"]] = json.dumps(data)
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]))
