"""`python -m envtune`: the same program as the `envtune` command."""

from envtune.cli import main

if __name__ == "__main__":
    main()
