"""Write a package as one file: `python scripts/assemble.py envtune/collector -o dist/collector.py`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from envtune.assemble import AssemblyError, assemble


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a package as one file that needs nothing but Python.")
    parser.add_argument("package", type=Path, help="its directory")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")
    options = parser.parse_args()
    try:
        text = assemble(options.package)
    except (AssemblyError, OSError, SyntaxError) as error:
        sys.exit(f"assemble: {error}")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(text, "utf-8")
    options.output.chmod(0o755)


if __name__ == "__main__":
    main()
