"""`python -I -m envtune`: the same program as the `envtune` command."""

import envtune.trust.import_path  # noqa: F401 (before any other import)

# isort: split
from envtune.cli import main

if __name__ == "__main__":
    main()
