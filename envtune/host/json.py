"""Parse JSON from a host; text that is nested too deeply is refused like invalid JSON."""

from __future__ import annotations

from typing import Any


def parse_json(text: str) -> Any:
    """Return the value of a JSON text.

    Raises ValueError for text that is not JSON, is nested too deeply, or contains a number of thousands of digits.
    """
    import json  # most runs parse no JSON

    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("too deeply nested") from None
