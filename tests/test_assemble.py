"""A package as one file: what it becomes, and what is refused because it would mean something else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Mapping

import pytest
from helpers.assembled import assembled
from helpers.examples import ROOT
from helpers.rows import sampled

from envtune.assemble import PROLOGUE, AssemblyError, assemble, shipped

START = 'if __name__ == "__main__":\n    main()\n'
PROGRAM = {
    "__init__.py": '"""A package."""\n',
    "__main__.py": '#!/usr/bin/env python3\n"""Say a\\tword."""\n\nimport sys\nfrom typing import List\n\n'
    "from .inner.words import WORDS, joined\n\n\n"
    "def main() -> List[str]:\n    import json\n\n    sys.stdout.write(json.dumps(joined(WORDS)))\n    return []\n\n\n"
    + START,
    "base.py": '"""The base."""\n\nimport os.path as paths\nfrom typing import List, Sequence\n\n'
    "FIRST: List[str] = [name for name in ('a', 'b')]\n\n\ndef both(names: Sequence[str]) -> str:\n"
    "    return paths.join(*names)\n",
    "inner/__init__.py": "",
    "inner/words.py": "from ..base import FIRST, both\n\n# What is said.\nWORDS = FIRST + [name for name in 'c']\n\n\n"
    "def joined(names):\n    return both(names)\n",
}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return write(tmp_path / "program", PROGRAM)


def write(package: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return package


def test_modules_follow_their_imports(package: Path, tmp_path: Path) -> None:
    text = assemble(package)
    assert text.startswith(
        '#!/usr/bin/python3 -I\n"""Say a\\tword."""\n'
        + PROLOGUE
        + "\nimport os.path as paths\nimport sys\nfrom typing import List, Sequence\n"
    )
    assert [line for line in text.splitlines() if line.startswith("# ---")] == [
        f"# {'-' * 100} {name}" for name in ("base", "inner.words", "__main__")
    ]
    assert "# What is said.\n" in text and "from ." not in text
    (tmp_path / "one.py").write_text(text, "utf-8")
    for argv in ([str(tmp_path / "one.py")], ["-m", "program"]):
        done = subprocess.run([sys.executable, *argv], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stdout == '"a/b/c"'


COMPANION = {
    "__init__.py": '"""What several programs bring along."""\n',
    "places.py": "from .words import HOME\n\n\ndef place():\n    return HOME\n",
    "words.py": 'HOME = "/"\n',
    "unused.py": "LEFT_OUT = 1\n",
}


def test_what_a_neighbour_gives_is_brought_along(package: Path) -> None:
    write(package.with_name("trust"), COMPANION)
    write(
        package,
        {
            "inner/words.py": "from ...trust.places import place\nfrom ..base import both\n\nWORDS = [place()]\n\n\n"
            "def joined(names):\n    return both(names)\n"
        },
    )
    text = assemble(package)
    names = [line.split()[-1] for line in text.splitlines() if line.startswith("# ---")]
    assert names == ["base", "trust.words", "trust.places", "inner.words", "__main__"]
    assert "LEFT_OUT" not in text
    done = subprocess.run([sys.executable, "-I", "-"], input=text, capture_output=True, text=True, check=True)
    assert done.stdout == '"/"'


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"places.py": "from ..other.words import HOME\n"}, "no such module"),
        ({"words.py": "from ..program.base import FIRST\n\nHOME = FIRST\n"}, "no such module"),
        ({"words.py": 'HOME = "/"\n\n\ndef main():\n    pass\n'}, "main is defined in"),
    ],
)
def test_a_neighbour_is_judged_as_the_rest(package: Path, files: Mapping[str, str], reason: str) -> None:
    write(package.with_name("trust"), {**COMPANION, **files})
    write(package, {"inner/words.py": "from ...trust.places import place\n\nWORDS = joined = place\n"})
    with pytest.raises(AssemblyError) as caught:
        assemble(package)
    assert reason in str(caught.value)


# What Python 3.9 says of the syntax of a later one differs from what those say.
NEWER = "3.10" if sys.version_info >= (3, 10) else "invalid syntax"


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"inner/words.py": PROGRAM["inner/words.py"] + "\n\ndef main():\n    pass\n"}, "main is defined in"),
        ({"inner/more.py": "for FIRST in ():\n    pass\n"}, "FIRST is defined in"),
        ({"inner/more.py": "try:\n    import sys\nexcept ImportError:\n    pass\n"}, "sys is the name of an import"),
        ({"inner/more.py": "def paths():\n    pass\n"}, "paths is the name of an import"),
        ({"inner/more.py": "import posixpath as paths\n"}, "paths is another import"),
        ({"inner/more.py": "def open():\n    pass\n"}, "open would hide the builtin"),
        ({"base.py": PROGRAM["base.py"] + "\nfrom .inner.words import WORDS\n"}, "base -> inner.words -> base"),
        ({"inner/more.py": "from ..base import both as two\n"}, "no second name"),
        ({"inner/more.py": "from ..base import *\n"}, "no second name"),
        ({"inner/more.py": "from .. import base\n"}, "no module base"),
        ({"inner/more.py": "from ..nothing import both\n"}, "no such module"),
        ({"inner/more.py": "from ...outside import both\n"}, "no such module"),
        ({"inner/more.py": "from ..base import third\n"}, "does not define third"),
        ({"inner/more.py": "def late():\n    from ..base import both\n"}, "belongs to the top"),
        ({"inner/more.py": "from envtune.errors import Missing\n"}, "envtune is not installed"),
        ({"inner/more.py": "from os import *\n"}, "import name"),
        ({"inner/more.py": "import os.path\n"}, "import name"),
        ({"inner/more.py": START}, "whether it is the program"),
        ({"inner/more.py": "match 1:\n    case 1:\n        pass\n"}, NEWER),
    ],
)
def test_what_would_mean_something_else_is_refused(package: Path, files: Mapping[str, str], reason: str) -> None:
    write(package, files)
    with pytest.raises((AssemblyError, SyntaxError)) as caught:
        assemble(package)
    assert reason in str(caught.value)


def test_a_program_is_needed(package: Path) -> None:
    (package / "__main__.py").unlink()
    with pytest.raises(AssemblyError, match=r"no __main__\.py"):
        assemble(package)


def test_the_command(package: Path, tmp_path: Path) -> None:
    argv = [sys.executable, str(ROOT / "scripts/assemble.py"), str(package), "-o", str(tmp_path / "dist/one.py")]
    subprocess.run(argv, check=True)
    assert (tmp_path / "dist/one.py").read_text("utf-8") == assemble(package)
    write(package, {"inner/words.py": "from ..__main__ import main\n\nWORDS = joined = main\n"})
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("assemble: modules import each other in a circle: ")


@pytest.mark.parametrize("name", sampled(["collector", "executor"], 2))
def test_a_checkout_assembles_what_an_install_brings(name: str) -> None:
    text = shipped(name)
    assert text == assembled(name)
    done = subprocess.run(
        [sys.executable, "-IS", "-", "--help"], input=text, capture_output=True, text=True, check=False
    )
    assert "usage: " + name + ".py" in done.stdout + done.stderr
