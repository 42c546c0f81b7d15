"""Take secrets out of what is recorded, by the names of variables and options and by what a secret looks like."""

import re
from typing import Any, List, Optional, Sequence

# Trees of the kernel: links inside them lead to other names of the same thing, so they are passed through unrecorded,
# and what is read there is the kernel's.
KERNEL_TREES = ("/proc/", "/sys/")


REDACTED = "<redacted>"
_SECRET_WORDS = (
    "password", "passwd", "passphrase", "passcode", "pass", "pwd", "secret", "secrets", "token", "credential",
    "credentials", "apikey", "accesskey", "secretkey", "privatekey", "authtoken", "accesstoken", "cookie", "cookies",
    "jwt", "sas",
)  # fmt: skip
# Words before `token` in options of training scripts, where a token is a piece of text: --pad-token-id 0.
_TEXT_TOKENS = (
    "pad", "eos", "bos", "unk", "mask", "sep", "cls", "special", "stop", "image", "num", "max", "min", "per", "next",
    "start", "end", "first",
)  # fmt: skip
# What is a secret under any name: Hugging Face, OpenAI, GitHub, GitLab, AWS, Slack, Google, JWT.
_TOKEN = re.compile(
    r"hf_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{15,}"
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}|xox[abpr]-[\w-]{10,}|AIza[\w-]{30,}|(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*"
    r"|(?:ssh-rsa|ssh-ed25519|ecdsa-sha2-\S+) AAAA[\w+/=]{20,}"
)
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.S)
_LOGIN = re.compile(r"((?<![a-zA-Z0-9+.-])[a-zA-Z][a-zA-Z0-9+.-]*://[^/\s:@'\"]*):[^/\s'\"]*@")
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}")
_VALUE = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s;&|\"']+")
_ASSIGNED = re.compile(r"(?<![\w$.-])-{0,2}(?P<name>[A-Za-z_][\w.-]*)[\"']?[ \t]*[=:][ \t]*(?=[^\s;&|])")
_OPTION = re.compile(r"(?<!\S)--?(?P<name>[A-Za-z_][\w.-]*)[ \t]+(?=[^\s;&|])")
_HINT = re.compile(
    r"(?i)pass|pwd|secret|token|credential|key|cookie|jwt|auth|signature|bearer|basic|hf_|sk-|gh[pousr]_|github_pat_"
    r"|glpat-|AKIA|ASIA|eyJ|ssh-|xox|AIza|ecdsa-|://[^/\s]*@|-[paw]\s"
)
# Programs that take a password after one letter: sshpass -p secret, mysql -psecret, redis-cli -a secret.
_PASSWORD_LETTER = re.compile(
    r"((?:^|[\s;&|/(])(?:sshpass|mysql\w*|mariadb\w*|redis-cli|mongo\w*|ldap\w+|(?:docker|podman) login)\b"
    r"(?:[^\n;&|]{0,200}?\s)??-[paw]\s*)([^\s;&|-][^\s;&|]*)"
)
_PASSWORD_PROGRAM = re.compile(r"(?:.*/)?(sshpass|mysql\w*|mariadb\w*|redis-cli|mongo\w*|ldap\w+)$")
_PASS_OF = (  # words before `pass`
    "admin", "auth", "become", "database", "db", "docker", "ftp", "git", "key", "ldap", "login", "mail", "mongo",
    "mysql", "pg", "postgres", "proxy", "redis", "registry", "root", "smtp", "ssh", "sudo", "user",
)  # fmt: skip
# A name that ends like this says where the secret is, not what it is.
_LOCATION_WORDS = ("file", "path", "dir", "sock", "home", "url", "host", "port")


def secret_name(name: str) -> bool:
    """Return whether a variable, option or key of this name holds a key, token, password or other secret."""
    if name in ("PWD", "OLDPWD"):
        return False  # the shell's working directories
    words = [w.lower() for w in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", name)]
    if not words or words[-1] in _LOCATION_WORDS or name == "GOOGLE_APPLICATION_CREDENTIALS":
        return False
    return any(_secret_word(words, place) for place in range(len(words)))


def _secret_word(words: Sequence[str], place: int) -> bool:
    word, before, after = words[place], words[place - 1] if place else "", list(words[place + 1 :])
    if word == "token":
        return before not in _TEXT_TOKENS and after in ([], ["value"], ["id"], ["secret"])
    if word == "tokens":
        return before in ("access", "api", "auth", "secret")
    if word == "pass":  # also what a compiler does once over a graph
        return (before in _PASS_OF or len(words) == 1) and not after
    if word in ("key", "keys", "auth", "signature", "pwd"):
        return after in ([], ["id"], ["value"], ["secret"])
    return word in _SECRET_WORDS


def redact_value(name: str, value: str) -> str:
    """Return the value of a variable as it may be kept."""
    if value and secret_name(name) and not _harmless(value):
        return REDACTED
    return redact_text(value)


def _harmless(value: str) -> bool:
    """Return whether a value is a reference to another variable, or nothing."""
    return not value.strip("\"'") or bool(re.match(r"[\"']?\$[\w{(]", value)) or value.strip('"') == REDACTED


def redact_words(text: str, mark: str = REDACTED) -> str:
    """Return `text` without what looks like a secret: tokens, private keys, passwords in URLs."""
    text = _PRIVATE_KEY.sub(mark, text)
    text = _LOGIN.sub(lambda m: m.group(1) + ":" + mark + "@", text)
    text = _BEARER.sub(lambda m: m.group(1) + " " + mark, text)
    return _TOKEN.sub(mark, text)


def redact_text(text: str) -> str:
    """Return one argument or value without the values of secret names and what looks like a secret."""
    return _redacted_text(text, REDACTED, REDACTED)


def redact_script(text: str) -> str:
    """Return a script or env file as `redact_text` does, in such a way that a shell still reads it as it was.

    A value becomes a quoted word; within a word, where quotes could be misread, it becomes "redacted" without any.
    """
    return _redacted_text(text, '"' + REDACTED + '"', REDACTED.strip("<>"))


def _redacted_text(text: str, value: str, within: str) -> str:
    if not _HINT.search(text):
        return text
    text = _redact_named(_OPTION, _redact_named(_ASSIGNED, text, value), value)
    text = _PASSWORD_LETTER.sub(lambda m: m.group(1) + value, text)
    return redact_words(text, within)


def _redact_named(pattern: Any, text: str, mark: str) -> str:
    """Return `text` with `mark` for the values that follow the names of secrets."""
    kept, at = [], 0
    for option in pattern.finditer(text):
        if option.start() >= at and secret_name(option.group("name")):
            value = _VALUE.match(text, option.end())
            if value is not None and not _harmless(value.group()):
                kept += [text[at : option.end()], mark]
                at = value.end()
    return "".join(kept) + text[at:]


def redact_argv(argv: Sequence[str]) -> List[str]:
    """Return the words of a command line without secrets: `--token x`, `--password=x`, `-p secret`, `KEY=x`, URLs."""
    kept: List[str] = []
    asks = any(_PASSWORD_PROGRAM.match(word) for word in argv[:3])
    for place, word in enumerate(argv):
        kept.append(_redacted_word(word, argv[place - 1] if place else "", asks))
    return kept


def _redacted_word(word: str, before: str, asks: bool) -> str:
    """Return a word of a command line without secrets; `asks`: the program takes a password."""
    option = before.startswith("--") and "=" not in before and secret_name(before[2:])
    letter = before in ("-p", "-pw", "-a", "-w") if asks else before in ("-p", "-pw")
    if option and not word.startswith("-"):
        return REDACTED
    if letter and not word.startswith("-") and (asks or not re.match(r"[/.]|[0-9:]+$", word)):
        return REDACTED
    if asks and re.match(r"-[paw][^=]", word):
        return word[:2] + REDACTED
    if before in ("-u", "--user") and ":" in word:
        return word.split(":", 1)[0] + ":" + REDACTED
    name, mark, value = word.partition("=")
    if mark and re.match(r"-{0,2}[A-Za-z_][\w.-]*$", name):
        return name + "=" + redact_value(name.lstrip("-"), value)
    return redact_text(word)


# What is kept of the environment of a process that was not named: what a training job is tuned by, nothing private.
JOB_VARIABLE = re.compile(
    r"(ACL|ASCEND|ATB|COMBINED|CPU_AFFINITY|DEVICE_|DISABLE_|DUMP_|DYNAMIC|GE_|HCCL|HOST_|HOSTAPI|INDUCTOR|INF_NAN|JOB_ID"
    r"|LOCAL_|MASTER_|MULTI_STREAM|NPU|OMP_|OOM|P2P_HCCL|PERF_DUMP|PER_STREAM|PROFILING|PTCOPY|PYTORCH|RANK|RESUME"
    r"|SCALAR|STREAMS|SWITCH|TASK_QUEUE|TBE|TE_|TOOLCHAIN|TORCH|TRI_COMBINED|WORLD_SIZE|\w*HCCL"
    r"|(?:GROUP_RANK|LD_LIBRARY_PATH|LD_PRELOAD|NODE_RANK|PATH|PYTHONHOME|PYTHONPATH)=)"
)


def redact_file(path: str, data: bytes, job: Optional[int] = None) -> bytes:
    """Return the content of a file as it may be kept; `job` is the process that was named by --pid."""
    of_process = re.match(r"/proc/([0-9]+)/(environ|cmdline)$", path)
    if of_process:
        rows = data.decode("utf-8", "surrogateescape").split("\0")
        if of_process.group(2) == "environ":
            named = of_process.group(1) == str(job)
            words = [redact_argv([row])[0] for row in rows if named or not row or JOB_VARIABLE.match(row)]
        else:
            words = redact_argv(rows)
        return "\0".join(words).encode("utf-8", "surrogateescape")
    if path.startswith(KERNEL_TREES) and path != "/proc/cmdline":
        return data
    try:
        return redact_script(data.decode("utf-8")).encode("utf-8")
    except UnicodeDecodeError:
        return data
