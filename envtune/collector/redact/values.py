"""Judge by the text of a value whether it is a secret: what kinds of tokens look like, and what is not a secret."""

import re

from .names import PASSWORD, PLAIN, SECRET, secret_grade

REDACTED = "<redacted>"
OPAQUE = "\ufffc"  # placeholder for what a shell expands
_TRIVIAL = frozenset(
    [
        "true",
        "false",
        "yes",
        "no",
        "on",
        "off",
        "none",
        "null",
        "nil",
        "undefined",
        "str",
        "int",
        "float",
        "bool",
        "bytes",
        "string",
        "optional",
        "any",
        "auto",
        "default",
        "never",
        "always",
        "basic",
        "redacted",
        "text",
        "all",
        "required",
        "enabled",
        "disabled",
        "0",
        "1",
    ]
)
_PLACEHOLDER = re.compile(r"<[^<>]{0,60}>$|\[[A-Za-z_]{1,20}\]$|[*x.]{3,}$|\{\{|%\(|\{[A-Za-z_]*\}$")
# `$A1b` is not a reference if nothing expands it: names of variables seldom mix cases with digits.
_REFERENCE = re.compile(
    r"[`(]|\$(?:[0-9{(@*]|[A-Za-z_]+(?!\w)|[A-Z_][A-Z0-9_]*(?!\w)|[a-z_][a-z0-9_]*(?!\w))|%s$|%\w+%$"
)
_NUMBER = re.compile(r"[+-]?[0-9][0-9.,_]{0,15}(?:[eE][+-]?[0-9]{1,3})?[a-zA-Z]?$")
_TREES = re.compile(
    r"(?:file://|~|\.{1,2}|%s)?/(?:root|home|etc|run|var|opt|usr|data|mnt|tmp|workspace|user|users|cache|nas|share|sfs|dev|bin|lib"
    r"|proc|srv|app|model|models|dataset|datasets|train|work|ssd|nvme)\d*(?:/|$)" % OPAQUE
)
_PATH = re.compile(
    r"(?:[~.%s]{0,2}(?:/[\w.+%s-]{1,64}){2,}/?|%s/[\w./+%s-]{1,256}|[\w.-]{1,64}\.(?:pem|crt|key|json|ya?ml|txt|py|sh|lic|pub))$"
    % ((OPAQUE,) * 4)
)
_LICENSE = re.compile(
    r"(?i)(?:apache|bsd|mit|l?a?gpl|mpl|cc|epl|isc|eula|mulan|other|zlib|unlicense|llama|qwen)\b[\w.+ -]*$"
)
_HEX = re.compile(r"(?i)(?:[0-9a-f]{16,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$")
_ALIKE = re.compile(r"[A-Za-z]+|[0-9]+")
_LINK_CHARACTERS = re.compile(r"[\s/\\<>()\[\]{}$`]")


def keeps(name: str, value: str) -> bool:
    """Return whether the value of a variable, option or key of that name is not a secret."""
    return keeps_graded(secret_grade(name), value)


def keeps_graded(grade: int, value: str) -> bool:
    """Return whether a value is not a secret, given the grade of its name."""
    value = value.strip().strip("\"'")
    if grade == PLAIN or is_trivial(value, grade):
        return True
    return grade < SECRET and not looks_secret(value)


def is_trivial(value: str, grade: int = SECRET) -> bool:
    """Return whether a value is empty, a reference, a path, a number or one of a few words, and so not a secret."""
    if not value.strip(OPAQUE) or value.lower() in _TRIVIAL or _REFERENCE.match(value) or REDACTED in value[:40]:
        return True
    if len(value) > 4096:
        return False
    if len(value) < 3 and not any(map(str.isalnum, value)):
        return True
    if _PLACEHOLDER.match(value) or (grade < PASSWORD and _NUMBER.match(value)):
        return True
    return is_path(value)


def is_path(value: str) -> bool:
    """Return whether a value is the path of a file."""
    if _TREES.match(value):
        return True
    return _PATH.match(value) is not None and not any(looks_random(part) for part in value.split("/"))


def looks_secret(value: str) -> bool:
    """Return whether a value with an ambiguous name looks like something nobody would write by hand.

    Letters and digits in three runs or more, or of both cases; a digest or UUID; letters that change case all the time.
    """
    if len(value) < 6 or len(value) > 4096 or is_trivial(value) or _LICENSE.match(value):
        return False
    if _HEX.match(value):
        return True
    if "://" in value or _LINK_CHARACTERS.search(value):
        return False
    runs = _ALIKE.findall(value)
    digits = sum(run.isdigit() for run in runs)
    if digits and digits < len(runs) and len(value) >= 8:
        version = re.match(r"v?[0-9]+(?:\.[0-9a-z]+)+$", value)
        return not version and (len(runs) >= 3 or (_is_mixed(value) and _changes(value) >= 0.4))
    return _changes(value) >= 0.4 and len(value) >= 10


def looks_random(text: str) -> bool:
    """Return whether a word of letters and digits was drawn at random: both cases and digits, changing often.

    A name in camel case changes at most once in five characters, a string drawn from all 62 at two of three.
    """
    if len(text) < 24 or len(text) > 4096 or text.startswith("_Z"):
        return False
    return _is_mixed(text) and sum(c.isdigit() for c in text) >= 2 and _changes(text) >= 0.45


def looks_typed(text: str) -> bool:
    """Return whether a word behind "the password is" is one: capitals, small letters and digits, eight or more."""
    return 8 <= len(text) <= 128 and _is_mixed(text)


def _is_mixed(text: str) -> bool:
    return all(any(map(test, text)) for test in (str.islower, str.isupper, str.isdigit))


def _changes(text: str) -> float:
    """Return how often adjacent characters differ in kind (small letter, capital, digit): 0 to 1."""
    kinds = ["d" if c.isdigit() else "u" if c.isupper() else "l" if c.isalpha() else "" for c in text]
    return sum(1 for a, b in zip(kinds, kinds[1:]) if a != b and a and b) / max(1, len(text) - 1)


# Secrets whatever their name.
TOKENS = re.compile(
    r"(?<![A-Za-z0-9_-])(?:"
    r"hf_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|gl[a-z]{2,5}-[\w-]{15,}"
    r"|[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[\w+/]{20,}|(?:LTAI|HST3|AKID|AKLT|HPUA|ALTAK)[\w-]{12,}"
    r"|(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}|xox[abeoprs]-[\w-]{10,}|xapp-[\w-]{20,}|AIza[\w-]{30,}|ya29\.[\w-]{20,}"
    r"|GOCSPX-[\w-]{20,}"
    r"|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{40,}|dckr_pat_[\w-]{20,}|hv[sbr]\.[\w-]{20,}|dop_v1_[0-9a-f]{30,}"
    r"|SG\.[\w-]{16,}\.[\w-]{16,}"
    r"|eyJ[\w-]{8,}\.[\w-]{8,}\.?[\w-]*|dapi[0-9a-f]{32}|gsk_\w{30,}|r8_\w{30,}|nvapi-[\w-]{30,}"
    r"|key-[0-9a-f]{32}|shp(?:at|ss|ca|pa)_[0-9a-fA-F]{32}|AGE-SECRET-KEY-1[0-9A-Z]{40,}|tskey-[\w-]{20,}|sgp_\w{30,}"
    r"|(?:pplx-|tgp_v1_|pcsk_|rpa_|ntn_|figd_|glsa_|nfp_|sq[apu]_|sntry[su]_|rubygems_|lin_api_|xai-)[A-Za-z0-9]{24,}\w*"
    r"|(?:PMAK|NRAK|HRKU|CFPAT|sq0(?:csp|atp|idp))-[\w-]{24,}|dp\.(?:st|pt|ct|sa|scim)\.(?:[a-z0-9_-]{1,20}\.)?\w{30,}"
    r"|(?:ATATT3x|ATCTT3x)[\w=-]{24,}|(?:ATBB|AKCp)[A-Za-z0-9]{24,}|oy2[a-z0-9]{40,}"
    r"|[0-9]{6,12}:AA[\w-]{30,}|[0-9a-f]{32}\.[A-Za-z0-9]{16}(?![\w.])|ms-[0-9a-f]{8}-[0-9a-f-]{27}|lsv2_\w{20,}"
    r"|(?:ssh-(?:rsa|ed25519|dss)|(?:sk-)?ecdsa-sha2-[a-z0-9-]{1,40}) AAAA[\w+/=]{20,}|v[0-9]:[\w+/]{30,}={0,2}"
    r")"
)
PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?"
    r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.S,
)
