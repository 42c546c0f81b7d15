"""Find secrets in any text: a line of a log, a file of configuration, code, one word of a command line.

Every pattern is tried once per position and fails without scanning the rest again, so that the time is linear in the
length of the text.
"""

import re
from typing import Any, Iterable, Iterator, List, Tuple

from .names import PASSWORD, PLAIN, SECRET, SUSPECT, secret_grade
from .values import (
    OPAQUE,
    PRIVATE_KEY,
    REDACTED,
    TOKENS,
    is_trivial,
    keeps_graded,
    looks_random,
    looks_secret,
    looks_typed,
)

Span = Tuple[int, int]
# Without one of these there is no secret; most lines and values have none.
_HINT = re.compile(
    r"(?i)pass|pw|secret|tok|cred|key|cookie|jwt|auth|sig|bearer|basic|session|licen[sc]e|[a-z]k\b|sas|salt|pin|otp|pat|psk"
    r"|hook|dsn|login|pword|eyJ|://|hf_|sk-|gh[pousr]_|gl[a-z]{2,5}-|LTAI|HST3|AKI|AKL|ASIA|xox|AIza|npm_|pypi|ssh-|ecdsa"
    r"|[sr]k_|hv[sbr]\.|SG\.|:AA|[\u4e00-\u9fff]|[A-Za-z0-9]{24}|:[^\s:@]{6,64}@|:[^\s:]{1,80}:[^\s:]{1,80}:[^\s:]{1,80}:"
)
# A name and what separates it from a value: `name=`, `"name": `, `--name `, `name is `.
_NAMED = re.compile(
    r"(?<![\w.$-])(?P<dash>-{0,2})(?P<name>[^\W\d][\w.-]*)(?P<close>\\{0,3}[\"']?\]?)"
    r"(?P<mark>[ \t]{0,8}(?:=>|:=|[+=:\uff1a\uff1d]=?)|[ \t]{1,8}(?:is|was)(?=[ \t])|(?=[ \t,]))(?P<blank>,?[ \t]{0,8})"
)
_CHINESE_NAMED = re.compile(
    "(?:\u5bc6\u7801|\u53e3\u4ee4|\u5bc6\u94a5|\u4ee4\u724c|\u79c1\u94a5|\u51ed\u8bc1)"
    "[\"']?[ \t]{0,8}(?:[=:\uff1a\uff1d]|\u4e3a|\u662f)?[ \t]{0,8}"
)
_OPENING = re.compile(r"(?:[A-Za-z]?\$?)(\\{0,3})([\"'])")
_BARE = re.compile(r"[^\s\"'`,;&<>%s]{1,1024}" % OPAQUE)
_SHELL_BARE = re.compile(r"[^\s\"'`,;&|<>(){}\[\]$\\]{1,1024}")  # a longer one is judged by its prefix
_WORD_REST = re.compile(r"[^\s%s]{1,1024}" % OPAQUE)
_LINE = re.compile(r"[^\"'\n\\]+")
_AUTHORIZATION = re.compile(r"(?:proxy-)?authorization$|(?:set-)?cookie$", re.I)
_AUTHORIZATION_SCHEME: Any = re.compile(r"[\"']?(?:[A-Za-z][\w-]{1,20}[ \t]+)?(?=[^\s=]*)")
_SCHEME = re.compile(r"(?i)\b(bearer|basic|negotiate|digest)[ \t]{1,4}([A-Za-z0-9._~+/=-]{8,})")
_XML = re.compile(r"<([A-Za-z][\w.:-]{0,80})>([^<>\n]{1,4096})</")
# Alone, or after words that say whose it is: `xai-...`, `team_token_v2-...`.
_LONG = re.compile(r"(?<![\w+./-])(?:[A-Za-z0-9]{1,12}[_.-]){0,3}?(/?[A-Za-z0-9][A-Za-z0-9+/]{22,})={0,2}(?![\w+/])")
_DIGEST_BEFORE = re.compile(
    r"(?i)(?:sha-?\d{1,3}|md5|blake2b|digest|checksum|integrity|hash)[\"']?\s{0,2}[-=:]\s{0,2}[\"']?$"
)
_URL = re.compile(r"://([^\s\"'<>`\\|]+)")
_URL_PARAMETER = re.compile(r"(?<=[?&;])([\w.%%-]{1,80})=([^&;#,)\]}%s]+)" % OPAQUE)
# `user:password@host` without a scheme, `host:port:database:user:password` of ~/.pgpass.
_LOGIN = re.compile(r"(?<![\w/.@:-])[a-z_][\w.-]{0,30}:([^\s:@/\"'<>=]{6,64})@(?!sha\d)[\w.-]+")
_PGPASS = re.compile(
    r"(?<![\w.:-])[\w.*-]{1,80}:(?:[0-9]{2,5}|\*):[\w.*-]{1,40}:[\w.*-]{1,40}:([^\s:\"']{6,64})(?![:\w])"
)
_USER = re.compile(r"(?:[a-z][a-z._]{0,20}[0-9]{0,3}|[A-Z][a-z]+|[\w.+-]{1,40}(?:%40|@)[\w.-]{1,60})$")
_HOOKS = re.compile(
    r"(?:hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks/|webhook\.office\.com/webhookb2/"
    r"|/open-apis/bot/v2/hook/|api\.telegram\.org/bot|maker\.ifttt\.com/trigger/\w{1,40}/with/key/|sctapi\.ftqq\.com/"
    r"|sc\.ftqq\.com/|api\.day\.app/|pushplus\.plus/send/|/t/tk-|/webhooks?/(?:incoming/)?|\bt\.me/joinchat/)"
)
_QUERY_KEYS = re.compile(
    r"(?i)(?:x-(?:amz|goog|oss|obs|cos|tos)-)?(?:signature|credential|security-token|sig|sign|awsaccesskeyid|accesskeyid"
    r"|ossaccesskeyid|q-ak|q-signature|key|code|auth|access_?key)$"
)
_PROSE = frozenset(
    [
        "to",
        "or",
        "and",
        "the",
        "a",
        "an",
        "in",
        "of",
        "for",
        "from",
        "with",
        "that",
        "this",
        "not",
        "must",
        "should",
        "cannot",
        "has",
        "can",
        "will",
        "if",
        "file",
        "id",
        "option",
        "argument",
        "required",
        "missing",
        "used",
        "via",
        "by",
        "as",
        "at",
        "on",
    ]
)


def secret_spans(text: str, in_shell: bool = False) -> List[Span]:
    """Return the spans of secrets in a text, in order and without overlap.

    `in_shell`: the text may be a script; then a bare value ends before what a shell would read as an operator.
    """
    if not _HINT.search(text):
        return []
    finders = (_tokens, _urls, _logins, _chinese, _elements, _long_tokens)
    spans = [span for find in finders for span in find(text)]
    return merged(spans + list(_named(text, in_shell)))


def merged(spans: Iterable[Span]) -> List[Span]:
    """Return the spans in order, with adjacent or overlapping ones merged."""
    kept: List[Span] = []
    for start, end in sorted(spans):
        if kept and start <= kept[-1][1]:
            kept[-1] = (kept[-1][0], max(end, kept[-1][1]))
        elif end > start:
            kept.append((start, end))
    return kept


def _tokens(text: str) -> Iterator[Span]:
    for pattern in (PRIVATE_KEY, TOKENS):
        for match in pattern.finditer(text):
            yield match.span()
    for match in _SCHEME.finditer(text):
        if not match.group(2).islower() or len(match.group(2)) > 20:
            yield match.span(2)


def _long_tokens(text: str) -> Iterator[Span]:
    """Yield what looks random and is not a digest: the only sign of a secret without a name."""
    for match in _LONG.finditer(text):
        word = match.group(1)
        if (looks_random(word) and word.count("/") * 8 <= len(word)) and not _DIGEST_BEFORE.search(
            text, max(0, match.start() - 16), match.start()
        ):
            yield match.span()


def _elements(text: str) -> Iterator[Span]:
    for match in _XML.finditer(text):
        if not keeps_graded(secret_grade(match.group(1)), match.group(2)):
            yield match.span(2)


def _chinese(text: str) -> Iterator[Span]:
    for match in _CHINESE_NAMED.finditer(text):
        start, end = _value_at(text, match.end(), False)
        value = text[start:end]
        if value and all(c < "\x80" for c in value) and not is_trivial(value, PASSWORD):
            yield start, _full_end(text, end, False)


# ---------------------------------------------------------------------- URLs


def _urls(text: str) -> Iterator[Span]:
    for match in _URL.finditer(text):
        start = match.start(1)
        for piece in match.group(1).split("://"):  # a URL in the query of another one
            yield from ((start + a, start + b) for a, b in _url_spans(piece))
            start += len(piece) + 3


def _logins(text: str) -> Iterator[Span]:
    for pattern in (_LOGIN, _PGPASS):
        for match in pattern.finditer(text) if ":" in text else ():
            if looks_secret(match.group(1)) or looks_typed(match.group(1)):
                yield match.span(1)


def _url_spans(url: str) -> Iterator[Span]:
    """Yield the secrets of what follows `://`: a password, a token instead of a user, parameters, a webhook's path."""
    yield from _login_spans(url)
    hook = _HOOKS.search(url)
    if hook is not None:
        end = re.compile(r"[^?#]*").match(url, hook.end())
        if end is not None and looks_like_hook(end.group()):
            yield end.span()
    for match in _URL_PARAMETER.finditer(url):
        name, value = match.groups()
        grade = SECRET if _QUERY_KEYS.match(name) else secret_grade(name)
        if not keeps_graded(grade, value) and (grade != SECRET or len(value) >= 6):
            yield match.span(2)


def looks_like_hook(path: str) -> bool:
    """Return whether the path after a webhook's address is long enough to be a secret."""
    return len(path) >= 12 and any(c.isdigit() for c in path)


def _login_spans(url: str) -> Iterator[Span]:
    authority = url[: url.index("/")] if "/" in url else url
    at = authority.rfind("@")
    colon = authority.find(":")
    if 0 <= colon < at and not set("?#") & set(authority[:colon]):
        if colon + 1 < at and not is_trivial(authority[colon + 1 : at], PASSWORD):
            yield colon + 1, at
        at = colon
    elif at < 0 or set("?#") & set(authority[:at]):
        return
    if at > 0 and not _USER.match(authority[:at]) and looks_like_token(authority[:at]):
        yield 0, at


def looks_like_token(user: str) -> bool:
    """Return whether the user in a URL is a token: no person's or service's name has so many kinds of characters."""
    return not is_trivial(user) and (looks_secret(user) or (len(user) >= 12 and any(c.isdigit() for c in user)))


# ---------------------------------------------------------------------- names and values


def _named(text: str, in_shell: bool) -> Iterator[Span]:
    done = 0
    for match in _NAMED.finditer(text):
        if match.start() < done:
            continue
        grade = secret_grade(match.group("name").strip(".-"))
        if grade == PLAIN:
            continue
        span = _value_span(text, match, grade, in_shell)
        if span is not None:
            done = _full_end(text, span[1], in_shell)
            yield span[0], done


def _value_span(text: str, match: Any, grade: int, in_shell: bool) -> Any:
    """Return the span of a name's value; None if there is none, or it is not a secret."""
    mark, name = match.group("mark").strip(), match.group("name")
    if match.group("blank").startswith(",") and not match.group("close"):
        return None
    if _AUTHORIZATION.match(name) and mark:
        line = _LINE.match(text, _AUTHORIZATION_SCHEME.match(text, match.end()).end())
        return line.span() if line and not is_trivial(line.group(), PASSWORD) else None
    begin = _behind_operator(text, match) if in_shell else match.end()
    start, end = _value_at(text, begin, in_shell)
    value = text[start:end]
    if not value or keeps_graded(grade, value):
        return None
    quoted = start > begin
    if not quoted and (_is_code(text, name, value, end) or not _is_value(match, grade, value)):
        return None
    if not quoted and grade == PASSWORD and mark == ":" and not in_shell and _begins_line(text, match.start()):
        return start, _yaml_end(text, end)
    if not quoted and grade == PASSWORD and mark in ("=", ":") and _begins_line(text, match.start()):
        return start, _word_end(text, end)
    return start, end


def _behind_operator(text: str, match: Any) -> int:
    """Return where the value begins: in `${TOKEN:-x}` after the dash; `${TOKEN:+--flag}` has none."""
    end: int = match.end()
    if text[match.start() - 2 : match.start()] != "${":
        return end
    return {"-": end + 1, "+": len(text), "?": len(text)}.get(text[end : end + 1], end)


def _word_end(text: str, end: int) -> int:
    """Return the end of the word that a value begins: what a line assigns may contain any character."""
    rest = _WORD_REST.match(text, end)
    return end if rest is None else rest.end()


def _full_end(text: str, end: int, in_shell: bool) -> int:
    """Return the end of a value of which only the beginning was examined."""
    pattern = _SHELL_BARE if in_shell else _BARE
    while text[end : end + 1] not in ("", ")", "]", "}", "\\", ".", ":"):
        rest = pattern.match(text, end)
        if rest is None:
            break
        end = rest.end()
    return end


def _is_value(match: Any, grade: int, value: str) -> bool:
    """Return whether the word after a name is its value without a separator that says so: `--token x`, `password x`."""
    mark = match.group("mark").strip()
    if mark in ("is", "was", "") or match.group("blank").startswith(","):
        if value.startswith("-") or value.lower().strip(".,:;!?") in _PROSE:
            return False
        strong = match.group("dash") and not mark
        return (grade >= SECRET and bool(strong)) or looks_secret(value) or (grade >= SECRET and looks_typed(value))
    return True


def _is_code(text: str, name: str, value: str, end: int) -> bool:
    """Return whether a bare word is code, not text: a call, an attribute, the name of another variable."""
    if text[end : end + 1] in ("(", "[") or re.match(r"[A-Za-z_][\w.]*[(\[]", value):
        return True
    if value[:1] in "({[<" or re.match(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+[),;]*$", value):
        return not looks_secret(value.rstrip("),;")) or bool(
            re.match(r"(?:self|args|cfg|config|os|opt|options)\.", value)
        )
    plain = value.strip(")]};,")
    return (
        bool(re.match(r"[A-Za-z_]+$", plain)) and (plain.isupper() or plain.islower()) and secret_grade(plain) > SUSPECT
    )


def _value_at(text: str, start: int, in_shell: bool) -> Span:
    """Return the span of the value that begins at `start`, without its quotes."""
    opening = _OPENING.match(text, start)
    if opening is not None:
        end = _quote_end(text, opening)
        if end >= 0:
            return opening.end(), end
        start = opening.end()
    bare = (_SHELL_BARE if in_shell else _BARE).match(text, start)
    if bare is None:
        return start, start
    end = bare.end()
    while end > start and text[end - 1] in ")]}\\" + ("" if in_shell else ".:"):
        end -= 1
    return start, end


_ENDINGS_OF_QUOTES = {quote: re.compile(r"[^%s\\\n]*(?:\\.[^%s\\\n]*)*" % (quote, quote)) for quote in "\"'"}


def _quote_end(text: str, opening: Any) -> int:
    """Return where a quoted value ends, -1 if the line ends first; an escaped quote ends at the next escaped one."""
    escape, quote = opening.groups()
    if escape:
        end = text.find(escape + quote, opening.end(), opening.end() + 4096)
    else:
        found = _ENDINGS_OF_QUOTES[quote].match(text, opening.end())
        end = found.end() if found and text[found.end() : found.end() + 1] == quote else -1
    return end if "\n" not in text[opening.end() : max(end, opening.end())] else -1


def _begins_line(text: str, start: int) -> bool:
    """Return whether only blanks, a dash, a comment mark or `export` precede `start` in its line."""
    before = text[max(0, start - 64) : start].rpartition("\n")[2]
    return before.strip(" \t-#;") in ("", "export")


def _yaml_end(text: str, start: int) -> int:
    """Return the end of a bare YAML value: of its line, or of the blanks before a comment."""
    line = (
        text[start:].partition("\n")[0] if len(text) - start < 4096 else text[start : start + 4096].partition("\n")[0]
    )
    return start + len(line.partition(" #")[0].rstrip())


def redacted(text: str, spans: Iterable[Span], mark: str = REDACTED) -> str:
    """Return the text with `mark` in place of the spans, which are in order and do not overlap."""
    kept, at = [], 0
    for start, end in spans:
        kept += [text[at:start], mark]
        at = end
    return "".join(kept) + text[at:]
