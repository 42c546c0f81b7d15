"""Diagnose a log: find the known error, the lines that prove it, and what this host says about it.

logs/files.py finds logs, logs/blocks.py reads them, scan.py finds the signatures of the catalog, rank.py decides
which of them is the cause, diagnosis.py runs the confirming checks; pipeline.py puts them together.

The package is also the public function `envtune.diagnose(...)`: importing one of its modules binds this name in
`envtune`, so the function and the package have to be one object.
"""

from __future__ import annotations

import sys
from types import ModuleType

from envtune.diagnose.pipeline import diagnose, diagnose_files

__all__ = ["diagnose", "diagnose_files"]


class _CallablePackage(ModuleType):
    __call__ = staticmethod(diagnose)


sys.modules[__name__].__class__ = _CallablePackage
