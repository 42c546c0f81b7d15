"""Scripts made to keep a reader busy: twice the script is twice the work, and an end always comes.

Each construct is a function of its size. Its work is counted in the units of the budget, which do not depend on the
machine; CPU seconds and memory are measured in a fork, with limits that are generous for a loaded machine.
"""

from __future__ import annotations

import random
from typing import Callable, Mapping, NamedTuple, Optional

import pytest
from helpers.forked import cost_of
from helpers.rows import sampled

from envtune.host import realpath
from envtune.job.environment import is_for_a_shell
from envtune.job.script import script_environment
from envtune.job.target import THIS_SHELL, JobEnvironment
from envtune.shell.budget import MAX_BYTES, MAX_COMMANDS, MAX_WORK, Budget
from envtune.shell.script import execute_script
from envtune.shell.state import State
from envtune.snapshot.host import SnapshotHost

GROWTH = 2.5  # of the work, when a construct is twice as large
SECONDS = 12.0  # of CPU for any script of at most a megabyte
MEGABYTES = 200
SCRIPTS = 40  # generated ones
BIG = "B=" + "x" * 131_000 + "\n"


class Construct(NamedTuple):
    script: Callable[[int], str]
    size: int  # for the counted work; CPU and memory are measured at `large`
    large: int


def loops(depth: int, body: str) -> str:
    return "for i in 1; do " * depth + body + "done; " * depth


def variables(count: int) -> str:
    return "".join(f"export V{number}={number}\n" for number in range(count))


CONSTRUCTS: Mapping[str, Construct] = {
    # what was measured in the version before
    "subshells in subshells": Construct(lambda n: "((a) " * n + ") " * n, 150, 6000),
    "subshells that are not closed": Construct(lambda n: "((a) " * n, 150, 6000),
    "subshells that look like arithmetic": Construct(lambda n: "((a); b)\n" * n, 150, 4000),
    "subshells hidden by here-documents": Construct(lambda n: "((a) <<E\n'\nE\n)\n" * n, 150, 8000),
    "arithmetic over a long name": Construct(lambda n: f"(({'a' * n}))\npython3 t.py", 150, 400_000),
    "arithmetic that assigns": Construct(lambda n: f"(({'a=1,' * n}))\npython3 t.py", 150, 100_000),
    "sum of variables": Construct(lambda n: f"A=$(({'+'.join(f'a{i}' for i in range(n))}))", 150, 50_000),
    "loops over words in loops": Construct(
        lambda n: f"for a in {'w ' * 16}; do for b in {'w ' * 16}; do for c in {'w ' * n}; do A=$c; done; done; done",
        150,
        50_000,
    ),
    "loops around dead code": Construct(lambda n: loops(20, "if false; then " + ":;" * n + "fi; "), 150, 50_000),
    "value appended to": Construct(lambda n: BIG + "A+=$B\n" * n, 100, 19_000),
    "long arguments": Construct(lambda n: BIG + "x $B$B$B\n" * n, 20, 20_000),
    "long value": Construct(lambda n: f"{BIG}A={'$B' * n}\n", 150, 400_000),
    "values of their own": Construct(lambda n: BIG + "".join(f"A{i}=x$B\n" for i in range(n)), 50, 19_000),
    "variables and commands": Construct(lambda n: variables(n) + "A=1 x\n" * n, 150, 9000),
    "variables and launch lines": Construct(lambda n: variables(n) + "A=1 python3 t.py\n" * n, 150, 9000),
    "variables between launch lines": Construct(
        lambda n: "".join(f"export V{i}=1\npython3 t.py\n" for i in range(n)), 500, 9000
    ),
    "negations": Construct(lambda n: f"[ {'! ' * n}x ]\n", 150, 190_000),
    "alternatives": Construct(lambda n: f"[ {'a -o ' * n}x ]\n", 150, 95_000),
    "conjunctions": Construct(lambda n: f"[ {'a -a ' * n}x ]\n", 150, 95_000),
    # and what else is repeated or nested
    "alternatives of [[ ]]": Construct(lambda n: f"[[ {'a || ' * n}x ]]\n", 150, 31_600),
    "negations of [[ ]]": Construct(lambda n: f"[[ {'! ' * n}x ]]\n", 150, 63_300),
    "here-documents on one line": Construct(lambda n: "x " + "<<E " * n + "\n" + "E\n" * n, 150, 33_300),
    "here-documents that do not end": Construct(lambda n: "x <<E\n" * n, 150, 33_300),
    "here-documents of shells": Construct(lambda n: "bash <<E\nA=1\nE\n" * n, 150, 19_000),
    "here-documents that are expanded": Construct(lambda n: f"bash <<E\nA={'$OLD ' * n}\nE\n", 150, 33_300),
    "here-documents of shells on one line": Construct(lambda n: "bash <<E;" * n + "\n" + "A=1\nE\n" * n, 150, 19_000),
    "here-documents within each other": Construct(
        lambda n: "".join(f"bash <<E{i}\n" for i in range(n)) + "".join(f"E{i}\n" for i in reversed(range(n))),
        150,
        3_000,
    ),
    "substitutions in substitutions": Construct(lambda n: f"A={'$(echo ' * 25}{'x' * n}{')' * 25}\n", 150, 33_300),
    "substitutions in a row": Construct(lambda n: f"A={'$(echo a)' * n}\n", 150, 16_600),
    "defaults in defaults": Construct(lambda n: f"A={'${a:-' * 25}{'x' * n}{'}' * 25}\n", 150, 100_000),
    "defaults in a row": Construct(lambda n: f"A={'${a:-b}' * n}\n", 150, 33_300),
    "braces": Construct(lambda n: f"export A={{{',' * n}\n", 150, 133_300),
    "braces in braces": Construct(lambda n: f"export A={'{a,' * n}\n", 150, 66_600),
    "escaped quotes": Construct(lambda n: "export A={a" + '\\"' * n + "\n", 150, 66_600),
    "backquotes": Construct(lambda n: "`" + "\\a" * n + "\n", 150, 133_300),
    "arrays": Construct(lambda n: f"A=({'(a) ' * n})\n", 150, 33_300),
    "cases": Construct(lambda n: f"case $OLD in {'*a*b*c) A=1;; ' * n}esac\n", 100, 10_000),
    "patterns cut from a long value": Construct(lambda n: f"A={'a' * 4000}\n" + "C=${A##*a*a*b}\n" * n, 20, 3_300),
    "long pattern": Construct(lambda n: f"A={'a' * n}\n[[ $A == {'*a' * n}b ]]\n", 100, 20_000),
    "text replaced by a long one": Construct(lambda n: f"{BIG}A={'a' * 50}\n" + "C=${A//a/$B}\n" * n, 100, 6_300),
    "home in a search path": Construct(lambda n: f"HOME=/{'x' * 100_000}\nA=a{':~/' * n}\n", 100, 66_600),
    "arguments joined": Construct(lambda n: f"set -- {'$OLD ' * n}\n" + 'A="x $*"\n' * 20, 150, 33_300),
    "arguments shifted": Construct(lambda n: f"set -- {'a ' * n}\n" + "shift\n" * 10, 150, 33_300),
    "wrappers of wrappers": Construct(lambda n: "nohup " * n + "python3 t.py\n", 150, 50_000),
    "env before env": Construct(lambda n: "env A=1 " * n + "python3 t.py\n", 150, 30_000),
    "options of bash": Construct(lambda n: "bash " + "-x " * n + "t.sh\n", 150, 63_300),
    "functions that call functions": Construct(
        lambda n: "".join(f"f{i}() {{ f{i + 1}; f{i + 1}; }}\n" for i in range(n)) + "f0\n", 100, 20_000
    ),
    "function defined again and again": Construct(lambda n: variables(n) + "f() { :; }\nf\n" * n, 150, 2_600),
    "returns": Construct(
        lambda n: "f() {\n" + "".join(f"A{i}=1; [ $1 ] && return\n" for i in range(n)) + "}\nf $x\n", 30, 5000
    ),
    "branches that cannot be told": Construct(lambda n: variables(n) + "[ $1 ] && A=1\n" * n, 150, 2_000),
    "modules loaded": Construct(lambda n: "export A=1\n" * n + "module load x\n" * n, 150, 3_000),
    "directories entered": Construct(lambda n: "cd /job\n" * n, 150, 6_300),
    "paths resolved": Construct(lambda n: f"A=$(readlink -f /{'a/' * n})\n", 150, 133_300),
    "comments": Construct(lambda n: "# (( ' \n" * n, 150, 33_300),
    "line ends": Construct(lambda n: "\n" * n + "A=1", 150, 300_000),
    "blanks": Construct(lambda n: "A=1" + " " * n + "\n", 150, 300_000),
    "words": Construct(lambda n: "echo " + "w " * n + "\n", 150, 133_300),
    "one block": Construct(lambda n: "{ " + ":;" * n + "}\n", 150, 133_300),
}
NAMES = sorted(CONSTRUCTS)


def machine(text: str) -> SnapshotHost:
    return SnapshotHost({"files": {"/job/train.sh": text}, "uname": {"machine": "aarch64"}})


def work(text: str) -> int:
    """What following the script takes from its budget, in commands and characters."""
    budget, state = Budget(work=1 << 60, size=1 << 60), State.started({"OLD": "keep"}, {}, None, "/job")
    execute_script(machine(text), realpath, "/job/train.sh", text, state, budget)
    return (MAX_COMMANDS - budget.commands) + ((1 << 60) - budget.work)


def reason(text: str) -> Optional[str]:
    """Why A is unknown after the script, None where it is known."""
    base = JobEnvironment({"OLD": "keep", "HOME": "/root"}, THIS_SHELL)
    unknown = script_environment(machine(text), "/job/train.sh", base).why_unknown("A")
    return None if unknown is None else unknown.en


@pytest.mark.parametrize("name", sampled(NAMES, 4))
def test_twice_the_script_is_twice_the_work(name: str) -> None:
    construct = CONSTRUCTS[name]
    once, twice = work(construct.script(construct.size)), work(construct.script(2 * construct.size))
    assert twice <= GROWTH * once + 200


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_large_script_is_answered(name: str) -> None:
    construct = CONSTRUCTS[name]
    quarter = cost_of(lambda: reason(construct.script(construct.large // 4)))
    whole = cost_of(lambda: reason(construct.script(construct.large)))
    assert whole.seconds < SECONDS and whole.megabytes < MEGABYTES
    assert whole.seconds <= 2 * GROWTH**2 * quarter.seconds + 0.5, (quarter, whole)


# ------------------------------------------------------------------ what a budget that is used up means


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            BIG + "".join(f"A{i}=x$B\n" for i in range(400)),
            "creates values that are too large to analyze (/job/train.sh:",
        ),
        ("A=1 python3 t.py\n" + "export A=1\n" * 30_000, "has too many steps to analyze (/job/train.sh:20001)"),
        ("export A=1; {\n" + ":;" * 55_000 + "}\n", "the script is too large to analyze (/job/train.sh:2)"),
        ("export A=1\n" + f"[[ {'$(cd /)' * 5000} ]]\n" * 4, "has too many steps to analyze (/job/train.sh:"),
        (
            "export A=1\n" + "x=${A//1/2}${A//1/2}${A//1/2}" * 20_000 + "\n" * 9 + "x=$x" * 999_999,
            "too complex to analyze",
        ),
    ],
    ids=["values", "commands", "statement", "substitutions", "characters"],
)
def test_nothing_is_known_of_a_script_that_cannot_be_followed_to_its_end(text: str, words: str) -> None:
    """Also what was set before: the rest might set it again, or start the job once more."""
    assert words in (reason(text) or "")


@pytest.mark.slow
def test_a_file_that_is_sourced_counts_as_well() -> None:
    files = {"/job/train.sh": "export A=1\nsource ./b.sh\nexport A=1\n", "/job/b.sh": ":\n" * 30_000}
    environment = script_environment(SnapshotHost({"files": files}), "/job/train.sh", JobEnvironment({}, THIS_SHELL))
    unknown = environment.why_unknown("A")
    assert unknown is not None and "has too many steps to analyze (/job/b.sh:19999)" in unknown.en
    assert "/job/b.sh:19999" in unknown.zh


def test_a_script_of_normal_size_takes_little_of_its_budget() -> None:
    text = "source /opt/set_env.sh\nexport PATH=/opt/bin:$PATH\nif [ -f /x ]; then export A=1; fi\n" * 300
    assert work(text) < MAX_WORK // 20
    assert MAX_BYTES >= 1 << 20


@pytest.mark.parametrize("size", [20_000, 400_000])
def test_env_file_of_line_ends(size: int) -> None:
    answer = cost_of(lambda: (is_for_a_shell("\n" * size), is_for_a_shell("\n" * size + "  export A=1")))
    assert answer.value == (False, True) and answer.seconds < SECONDS


# ------------------------------------------------------------------ generated scripts

PIECES = (
    *(
        "a ",
        "A=1\n",
        "A=1 ",
        "export A=$A:x\n",
        "A+=x\n",
        "x;",
        "x &\n",
        "x|",
        "x && ",
        "! ",
        "$A",
        "${A:=b}",
        "${A##*/}",
    ),
    *("${A%%x*}", "${A//a/b}", "$1", "$@", "$(pwd)", "`pwd`", "$(", "${", "${a:-", "`", "'", '"', "\\", '\\"', "$'a'"),
    *(
        "((",
        "((a) ",
        "((A=1))\n",
        "$((A++))",
        "$((",
        "(a)\n",
        "(",
        ")",
        "{ ",
        "}",
        "{a,",
        "[ -f /x ]\n",
        "[[ a == b* ]]\n",
    ),
    *(
        "-o a ",
        "|| a ",
        "<<E\n",
        "<<'E'\n'\nE\n",
        "<(a)",
        "> x ",
        "#",
        "\n",
        ";;",
        "case x in\n",
        "a) x;;\n",
        "*a*b",
        "[!",
    ),
    *(
        ":~/",
        "f() { ",
        "f\n",
        ". ./b.sh\n",
        "bash b.sh\n",
        'eval "$A"\n',
        "set -- $A\n",
        "shift\n",
        '"$@" ',
        "local A=1\n",
    ),
    *(
        "module load x\n",
        "cd a\n",
        "cd /\n",
        "A=1 python3 t.py\n",
        "env A=1 ",
        "nohup ",
        "sudo ",
        "if x; then ",
        "fi\n",
    ),
    *("[ $1 ] && A=1\n", "for i in a b; do ", "while x; do ", "done\n", "break\n", "return\n", "A=(1 2)\n", "set -a\n"),
)
AROUND = (
    *(
        ("", ""),
        ("A=" + "x" * 120_000 + "\n", ""),
        ('A="' + "a " * 50_000 + '"\n', ""),
        ('x="', '"\n'),
        ("x=$(", ")\n"),
    ),
    *(
        ("f() { ", "; }\nf\nf\n"),
        ("while x; do ", "; done\n"),
        ("[ ", " ]\n"),
        ("[[ ", " ]]\n"),
        ("case a in ", " esac\n"),
    ),
    *(("set -- " + "a " * 20_000 + "\n", ""), (variables(1500), ""), ("x=${a:-", "}\n"), ("((", "))\n")),
)


def generated(number: int) -> str:
    """One script: some pieces repeated up to 60 KB, within something that makes each of them expensive."""
    chance = random.Random(number)
    before, after = chance.choice(AROUND)
    unit = "".join(chance.choice(PIECES) for _ in range(chance.choice((1, 1, 2, 2, 3))))
    return before + unit * (60_000 // len(unit)) + after


@pytest.mark.slow
def test_generated_scripts_are_answered() -> None:
    for number in range(SCRIPTS):
        cost = cost_of(lambda: reason(generated(number)))  # noqa: B023  # called at once
        assert cost.seconds < SECONDS and cost.megabytes < MEGABYTES, (number, generated(number)[:80], cost)
