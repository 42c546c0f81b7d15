"""Why an interpreter could not be found."""


class Unresolved(Exception):
    """The interpreter cannot be determined by reading: a code, the path where the search ended, and a detail."""

    def __init__(self, code: str, path: str, detail: str = "") -> None:
        Exception.__init__(self, "%s: %s %s" % (code, path, detail))
        self.code = code
        self.path = path
        self.detail = detail
