"""JSON that a host gave: what is too deeply nested is refused like what is no JSON."""

from __future__ import annotations

from typing import Any


def parse_json(text: str) -> Any:
    """Return the value of a JSON text; ValueError where it is none, too deeply nested, or has thousands of digits."""
    import json  # most runs read none

    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("too deeply nested") from None
