"""Why an interpreter could not be found."""


class Unresolved(Exception):
    """Reading does not show which interpreter it is: a code, the path it ended at, and a detail."""

    def __init__(self, code: str, path: str, detail: str = "") -> None:
        Exception.__init__(self, "%s: %s %s" % (code, path, detail))
        self.code = code
        self.path = path
        self.detail = detail
