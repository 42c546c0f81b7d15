"""Draws what commands print as SVG: docs/images/NAME[-zh]-light.svg and -dark.svg.

python docs/pictures.py            write them
python docs/pictures.py --check    end with 1 when what is there is not what would be written

The text comes from the program itself, run on the recorded hosts of docs/readme_output.py with colors.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Iterator, Mapping
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "docs"), str(ROOT / "tests")]

import readme_output  # noqa: E402

from envtune.report.layout import display_width  # noqa: E402

IMAGES = ROOT / "docs" / "images"
# name -> what is run, and the command line that is shown
PICTURES: Mapping[str, tuple[str, str]] = {
    "check": ("check --snapshot node17.json", "envtune check"),
    "diagnose": ("diagnose train.log --snapshot node19.json", "envtune diagnose train.log"),
}
FOREGROUND, BACKGROUND, BORDER = "fg", "bg", "border"
# of the primer palettes that GitHub uses in both themes
THEMES: Mapping[str, Mapping[str, str]] = {
    "light": {FOREGROUND: "#1f2328", BACKGROUND: "#f6f8fa", BORDER: "#d1d9e0", "31": "#cf222e", "32": "#116329",
              "33": "#7d4e00", "34": "#0550ae", "35": "#8250df", "36": "#1b7c83", "90": "#59636e", "2": "#59636e"},
    "dark": {FOREGROUND: "#e6edf3", BACKGROUND: "#151b23", BORDER: "#3d444d", "31": "#ff7b72", "32": "#3fb950",
             "33": "#d29922", "34": "#79c0ff", "35": "#d2a8ff", "36": "#56d4dd", "90": "#9198a1", "2": "#9198a1"},
}  # fmt: skip
CELL, LINE, SIZE, EDGE = 8.4, 19.0, 14, 16  # width of a cell, height of a line, font size, margin: pixels
FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Noto Sans Mono CJK SC', monospace"
BLANK = "&#160;"  # several in a row stay several
_ESCAPE = re.compile(r"\x1b\[([0-9;]*)m")


def pictures() -> dict[str, str]:
    """Every picture by its file name."""
    made = {}
    with readme_output.workplace():
        for name, (words, shown) in PICTURES.items():
            for lang, suffix in (("en", ""), ("zh", "-zh")):
                output = readme_output.printed([*words.split(), "--color", "always"], lang, shown)
                text = f"\x1b[2m$\x1b[0m \x1b[1m{shown}\x1b[0m\n{output.rstrip()}"
                for theme in THEMES:
                    made[f"{name}{suffix}-{theme}.svg"] = drawn(text, shown, THEMES[theme])
    return made


def drawn(text: str, title: str, colours: Mapping[str, str]) -> str:
    """A terminal with this text, whose colors are those of ECMA-48."""
    lines = text.splitlines()
    cells = max(display_width(_ESCAPE.sub("", line)) for line in lines)
    width, height = cells * CELL + 2 * EDGE, len(lines) * LINE + 2 * EDGE - 4
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(title)}">',
        f"<title>{escape(title)}</title>",
        f'<rect x="0.5" y="0.5" width="{width - 1:.0f}" height="{height - 1:.0f}" rx="8" '
        f'fill="{colours[BACKGROUND]}" stroke="{colours[BORDER]}"/>',
        f'<g font-family="{FONTS}" font-size="{SIZE}" fill="{colours[FOREGROUND]}">',
    ]
    for number, line in enumerate(lines):
        parts += _line(line, EDGE + number * LINE + SIZE, colours)
    return "\n".join([*parts, "</g>", "</svg>", ""])


def _line(line: str, y: float, colours: Mapping[str, str]) -> Iterator[str]:
    """One element for each stretch of the same style and width, at its cell: a font's own widths move nothing."""
    column, style = 0, ()
    for number, piece in enumerate(_ESCAPE.split(line)):
        if number % 2:
            style = () if piece in ("", "0") else (*style, *piece.split(";"))
            continue
        for run in re.findall(r"[ -~]+|[^ -~]+", piece):
            word = run.strip()
            if word:
                x = EDGE + (column + len(run) - len(run.lstrip())) * CELL
                length = display_width(word) * CELL
                place = f'x="{x:.1f}" y="{y:.1f}" textLength="{length:.1f}"'
                yield f"<text {place}{_style(style, colours)}>{escape(word).replace(' ', BLANK)}</text>"
            column += display_width(run)


def _style(codes: tuple[str, ...], colours: Mapping[str, str]) -> str:
    fill = next((colours[code] for code in reversed(codes) if code in colours), "")
    return (f' fill="{fill}"' if fill else "") + (' font-weight="bold"' if "1" in codes else "")


def main() -> int:
    made = pictures()
    wrong = [name for name, text in made.items() if not _same(IMAGES / name, text)]
    if "--check" in sys.argv[1:]:
        sys.stderr.write("".join(f"docs/images/{name} is out of date: make docs\n" for name in wrong))
        return 1 if wrong else 0
    IMAGES.mkdir(exist_ok=True)
    for name in wrong:
        (IMAGES / name).write_text(made[name], "utf-8")
    for path in IMAGES.glob("*.svg"):
        if path.name not in made:
            path.unlink()
    return 0


def _same(path: Path, text: str) -> bool:
    return path.exists() and path.read_text("utf-8") == text


if __name__ == "__main__":
    raise SystemExit(main())
