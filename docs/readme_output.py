"""The one picture of the README: a real report on a recorded host, written between its markers.

python docs/readme_output.py            write it
python docs/readme_output.py --check    end with 1 when the README shows something else
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOST = "910b-openeuler2203-troubled"
BEGIN, END = "<!-- output -->\n```text\n", "```\n<!-- /output -->"


def picture() -> str:
    """What `envtune check` prints on the recorded host."""
    sys.path.insert(0, str(ROOT / "tests"))
    from helpers.recorded import host_data, report

    from envtune.report.check_short import render

    return render(report(host_data(HOST)), "en", width=80) + "\n"


def updated(readme: str) -> str:
    """The README with the picture between its markers."""
    head, _, rest = readme.partition(BEGIN)
    return head + BEGIN + picture() + END + rest.partition(END)[2]


def main() -> int:
    path = ROOT / "README.md"
    readme = path.read_text("utf-8")
    new = updated(readme)
    if "--check" in sys.argv:
        if new != readme:
            sys.stderr.write("README.md is out of date: make docs\n")
        return int(new != readme)
    path.write_text(new, "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
