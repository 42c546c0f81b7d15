"""Find secrets on command lines: in options, after letters that take a password, in assignments and URLs."""

import re
from typing import Any, Iterator, List, Sequence, Tuple

from .names import PASSWORD, PLAIN, SECRET, secret_grade
from .text import Span, merged, secret_spans
from .values import OPAQUE, is_trivial, keeps_graded, looks_secret, looks_typed

WordSpan = Tuple[int, int, int]  # index of the word, start, end
_ASSIGNED = re.compile(
    r"(?P<dash>[-+]{0,2}|/)(?P<name>(?:D(?=[a-z]))?[^\W\d][\w.:/-]*)(?:\[[^\]]{0,80}\])?(?P<mark>\+?=|:=)"
)
_OPTION = re.compile(r"(?:--?|\+)([^\W\d][\w.-]*)$")
_NAME = re.compile(r"[^\W\d][\w.-]*$")
_COMMAND_WORD = re.compile(r"[^\s;&|()\"']+")
# program -> letters of options that take a secret
_LETTERS = (
    (re.compile(r"(?:sshpass|mysql\w*|mariadb\w*|mycli|mongo\w*|7za?|7zr|rar|unrar|sshfs|az|lftp|pgcli)$"), "p"),
    (re.compile(r"(?:redis-\w+|coscmd)$"), "a"),
    (re.compile(r"(?:coscmd)$"), "s"),
    (re.compile(r"(?:ldap\w+)$"), "w"),
    (re.compile(r"(?:zip|unzip|sqlcmd|bcp|ipmitool|isql|tsql|rdesktop)$"), "P"),
    (re.compile(r"(?:swanlab|openssl|obsutil\w*|ossutil\w*|coscli|ossutil64)$"), "k"),
    (re.compile(r"(?:obsutil\w*|ossutil\w*|coscli)$"), "i"),
    (re.compile(r"(?:ssh-keygen)$"), "NP"),
    (re.compile(r"(?:snmp\w+)$"), "AX"),
    (re.compile(r"curl$"), "b"),
    (re.compile(r"openi$"), "t"),
)
_LOGIN_PROGRAMS = re.compile(r"(?:docker|podman|nerdctl|helm|crane|oras|buildah|skopeo|ctr)$")
_WITHOUT_PASSWORDS = re.compile(
    r"(?:docker|podman|nerdctl|mkdir|install|cp|ps|pytest|srun|sbatch|salloc|squeue|sinfo|ssh|scp|sftp|tar|taskset|pgrep"
    r"|nmap|patch|make|perf|lsof|rsync|rmdir|git|npm|pip\d*|conda|gcc|g\+\+|cc|ls|env|chown|chgrp|id|sudo|su|runuser|flock)$"
)
_LOGIN_OPTION = re.compile(
    r"(?:-[uUE]|-a|--(?:user|cert|proxy-cert|login|userpwd|proxy-user|(?:src-|dest-)?creds?|auth|basic|basic-auth))$"
)
_POSITIONAL = (
    ("wandb", "login"),
    ("vault", "login"),
    ("swanlab", "login"),
    ("modelscope", "login"),
    ("htpasswd", "-b"),
    ("openssl", "passwd"),
    ("wpa_passphrase", ""),
    ("poetry", "config"),
    ("rabbitmqctl", "add_user"),
    ("rabbitmqctl", "change_password"),
)
_SHOWS_COMMAND = re.compile(
    r"(?:(?<=[\s/'\"])|^)(?:sshpass|mysql\w*|mariadb\w*|mongo\w*|redis-\w+|7za?|ldap\w+|(?:un)?zip|sqlcmd|bcp|ipmitool|swanlab"
    r"|openssl|(?:obs|oss)util\w*|cosc\w+|ssh-keygen|snmp\w+|curl|http|https|wget|docker|podman|wandb|vault|htpasswd"
    r"|smbclient|xfreerdp|rabbitmqctl|skopeo|lftp|az|sqlplus"
    r"|sqlldr|(?:exp|imp)dp|rman|wpa_passphrase|poetry|openi|sendemail)[ \t][^\n]*"
    r"|(?<=[ \t])(?:-u|--user|--login|--creds)[= ][^\n]*",
    re.M,
)
_PROMPTING = frozenset(
    ["chpasswd", "passwd", "smbpasswd", "vncpasswd", "mkpasswd", "htpasswd", "grub-mkpasswd-pbkdf2", "kinit", "ssh-add"]
    + ["cryptsetup", "wpa_passphrase"]
)
_LETTERS_AND_DIGITS = re.compile(r"(?=[^\d]{0,64}\d)(?=\d{0,64}[A-Za-z])[^/=:.,-]{6,64}$")
_FOR_A_USER = re.compile(r"(?i)(?:^|[_-])(?:user|login|userpwd|username)$")
_ORACLE = re.compile(r"(?:sqlplus|sqlldr|expdp|impdp|rman|tnsping)$")
_READS_SECRET = re.compile(r"--?(?:password-stdin|with-token|stdin|key-file=-|passphrase-fd=?0?|pass-stdin)$|stdin$")


def word_spans(words: Sequence[str]) -> List[WordSpan]:
    """Return the spans of secrets in the words of a command line."""
    programs = [word.rpartition("/")[2] for word in words[:10] if not word.startswith("-")]
    letters = _secret_letters(words, programs)
    harmless = any(_WITHOUT_PASSWORDS.match(name) for name in programs[:4])
    found: List[WordSpan] = []
    for place, word in enumerate(words):
        before = words[place - 1] if place else ""
        spans = list(_spans_of(word, before, letters, harmless))
        found += [(place, start, end) for start, end in merged(spans)]
    return found + list(_positional(words, programs))


def _secret_letters(words: Sequence[str], programs: Sequence[str]) -> str:
    """Return the letters of options that take a secret, for the programs that these words may start."""
    letters = "".join(found for pattern, found in _LETTERS if any(pattern.match(name) for name in programs))
    if "login" in words[:6] and any(_LOGIN_PROGRAMS.match(name) for name in programs):
        letters += "p"
    return letters


def _spans_of(word: str, before: str, letters: str, harmless: bool) -> Iterator[Span]:
    if not word:
        return
    if _follows(word, before, letters, harmless):
        yield 0, len(word)
        return
    attached = _attached(word, letters, harmless)
    if attached:
        yield attached, len(word)
        return
    login = _login(word, before, harmless)
    if login:
        yield login, len(word)
    assigned = _ASSIGNED.match(word)
    if assigned is not None:
        yield from _assigned_spans(word, assigned)
    yield from secret_spans(word)
    if " " in word.strip() or "\n" in word.strip():
        yield from _command_spans(word)


def _command_spans(text: str) -> Iterator[Span]:
    """Yield the secrets of a command line inside a word: `bash -c "..."`, `ARGS="..."`."""
    for command in re.finditer(r"[^\n;&|]+", text):
        words = list(_COMMAND_WORD.finditer(text, command.start(), command.end()))
        for place, start, end in word_spans([match.group() for match in words]):
            yield words[place].start() + start, words[place].start() + end


def line_spans(text: str) -> List[Span]:
    """Return the spans of secrets in lines that show a command, such as those of `set -x`."""
    spans: List[Span] = []
    for line in _SHOWS_COMMAND.finditer(text):
        spans += ((line.start() + a, line.start() + b) for a, b in _command_spans(line.group()))
    return merged(spans)


def _follows(word: str, before: str, letters: str, harmless: bool) -> bool:
    """Return whether a word is a secret, judged by the word before it."""
    if word.startswith("-") and not word.startswith("-----"):
        return False
    if before[:1] == "-" and before[1:2] != "-" and len(before) == 2 and before[1] in letters:
        return not is_trivial(word, PASSWORD) or word.isdigit()
    if before in ("-p", "-pw", "-xp", "-P"):
        mixed = before == "-p" and _LETTERS_AND_DIGITS.match(word) is not None
        return before in ("-pw", "-xp") or (not harmless and not is_trivial(word) and (mixed or looks_secret(word)))
    option = _OPTION.match(before)
    if option is not None:
        return not keeps_graded(secret_grade(option.group(1)), word)
    grade = secret_grade(before) if _NAME.match(before) else PLAIN
    return grade >= SECRET and looks_secret(word) and "=" not in word


def _attached(word: str, letters: str, harmless: bool) -> int:
    """Return where the secret of `-psecret` begins; 0 if there is none."""
    match = re.match(r"-([A-Za-z])=?(?=.)|/p:(?=.)|pass:(?=.)", word)
    if match is None:
        return 0
    value = word[match.end() :]
    if match.group(1) is None:
        return match.end() if not is_trivial(value, PASSWORD) else 0
    if match.group(1) in letters:
        return match.end()
    return match.end() if match.group(1) == "p" and not harmless and "=" not in value and looks_secret(value) else 0


def _login(word: str, before: str, harmless: bool) -> int:
    """Return where the password of `-u user:password` begins; 0 if there is none."""
    text, at = word, 0
    option = re.match(r"(--[a-z-]+)=", word)
    if option is not None:
        before, at = option.group(1), option.end()
    elif re.match(r"-[uU][^-:]+[:%]", word):
        before, at = word[:2], 2
    if not _LOGIN_OPTION.match(before) or "://" in word:
        return 0
    text = word[at:]
    user, mark, value = text.partition("%" if before == "-U" and "%" in text else ":")
    if not mark and before == "-u" and looks_secret(text.partition(",")[2]):  # of lftp
        user, mark, value = text.partition(",")
    if not mark or not user or is_trivial(value, SECRET) or (harmless and not looks_secret(value)):
        return 0
    return at + len(user) + 1


def password_of(name: str, value: str) -> int:
    """Return where the password begins in `user:password`, the value of a variable for a user; 0 if none."""
    user, _, password = value.partition(":") if _FOR_A_USER.search(name) else ("", "", "")
    return len(user) + 1 if user and (looks_secret(password) or looks_typed(password)) else 0


def _assigned_spans(word: str, match: Any) -> Iterator[Span]:
    """Yield the value of `NAME=value` and `--name=value`, and of an assignment that is the value: `--set=token=x`."""
    for _ in range(4):
        name, start = re.split(r"[:/]", match.group("name"))[-1], match.end()
        password = password_of(name, word[start:])
        if password:
            yield start + password, len(word)
            return
        if not keeps_graded(secret_grade(name), word[start:]):
            yield start, len(word)
            return
        match = _ASSIGNED.match(word, start)
        if match is None or re.search("[,&;]", word[start : start + 4096]):
            return


def _positional(words: Sequence[str], programs: Sequence[str]) -> Iterator[WordSpan]:
    """Yield the secret that a program takes without an option: `wandb login KEY`."""
    for place, word in enumerate(words[:64]):
        oracle = re.match(r"[\w$#]{1,64}/([^/@\s]+)(?=@|$)", word) if any(map(_ORACLE.match, programs)) else None
        if oracle is not None and place:
            yield (place, *oracle.span(1))
    for program, verb in _POSITIONAL:
        if program in programs and any(_is_verb(verb, word) for word in words):
            place = len(words) - 1
            if words[place] not in (program, verb) and words[place][:1] not in ("-", OPAQUE) and len(words[place]) >= 6:
                yield place, 0, len(words[place])


def _is_verb(verb: str, word: str) -> bool:
    return not verb or word == verb or (verb == "-b" and re.match(r"-\w*b", word) is not None)


def reads_secret(words: Sequence[str]) -> bool:
    """Return whether a command reads a password from its standard input."""
    name = words[0].rpartition("/")[2] if words else ""
    if name == "sudo":
        return any(re.match(r"-\w*S", word) for word in words[1:4])
    return name in _PROMPTING or any(_READS_SECRET.match(word) for word in words[1:])
