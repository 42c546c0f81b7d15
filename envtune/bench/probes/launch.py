"""The work of a thread that dispatches operators: calls, attributes, dictionaries, and calls into a library.

    python launch.py

Prints CPU seconds of the median round as JSON: fewer on a faster CPU.
"""

import ctypes
import json
import sys
import time
from typing import Any, Dict, List

ROUNDS, CALLS = 9, 30_000


class Operator:
    """An operator with its attributes."""

    def __init__(self, name: str, attributes: Dict[str, int]) -> None:
        self.name, self.attributes = name, attributes

    def key(self, shape: List[int]) -> str:
        """Return the key by which its kernel would be looked up."""
        return f"{self.name}-{len(shape)}-{self.attributes['dim']}"


def round_of(operators: List[Operator], kernels: Dict[str, int]) -> float:
    """Return the CPU seconds of one round."""
    shape, number = [32, 3, 224, 224], ctypes.c_int(0)
    call = ctypes.byref
    start = time.process_time()
    for at in range(CALLS):
        operator = operators[at & 15]
        kernels[operator.key(shape)] = kernels.get(operator.key(shape), 0) + 1
        call(number)
    return time.process_time() - start


def main() -> Dict[str, Any]:
    """Return the result to print."""
    operators = [Operator(f"op{at}", {"dim": at}) for at in range(16)]
    times = sorted(round_of(operators, {}) for _ in range(ROUNDS))
    return {"seconds": times[ROUNDS // 2], "about": f"{CALLS} calls"}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main()))
