"""Judge by the name of a variable, option or key whether its value is a secret."""

import re
from functools import lru_cache
from typing import List

PLAIN, SUSPECT, SECRET, PASSWORD = 0, 1, 2, 3  # SUSPECT: the value decides; PASSWORD: a number may be one, too
NAME_LIMIT = 128  # characters of a name that are examined, from its end

_NAME_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")
_PASSWORD_WORDS = frozenset(
    [
        "password",
        "passwords",
        "passwd",
        "passphrase",
        "passcode",
        "pword",
        "pwd",
        "pw",
        "pswd",
        "psw",
        "passwort",
        "kennwort",
        "secret",
        "secrets",
    ]
)
_SECRET_WORDS = frozenset(
    [
        "credential",
        "credentials",
        "cred",
        "creds",
        "apikey",
        "apikeys",
        "accesskey",
        "secretkey",
        "privatekey",
        "authtoken",
        "accesstoken",
        "apitoken",
        "cookie",
        "cookies",
        "jwt",
        "keyphrase",
        "tokenvalue",
        "bearer",
        "psk",
        "ak",
        "sk",
        "aksk",
    ]
)
_ENDINGS = ("password", "passwd", "passphrase", "keyphrase", "apikey", "accesskey", "secretkey", "privatekey")
_PASSWORD_ENDING = re.compile(
    r"(?:[a-z]+(?:password|passwd|passphrase|pwd|pw|secret)|(?:ssh|db|my|pg|user|root|admin|key"
    r"|store|vault|smtp|ftp|require|bind|sudo|ldap|mail|become|cert|keystore|truststore|auth|priv|snmp|wifi|bmc|ipmi)pass)$"
)
_CHINESE = re.compile("\u5bc6\u7801|\u53e3\u4ee4|\u5bc6\u94a5|\u4ee4\u724c|\u79c1\u94a5|\u51ed\u8bc1")
# The value decides if a name ends like this.
_SUSPECT_WORDS = frozenset(
    [
        "auth",
        "authorization",
        "signature",
        "sig",
        "license",
        "licence",
        "pin",
        "otp",
        "salt",
        "sas",
        "pat",
        "session",
        "sessionid",
        "sid",
        "webhook",
        "hook",
        "login",
    ]
)
# Words before `token`, `key` and `pass` in options of training scripts and compilers.
_TEXT_TOKENS = frozenset(
    [
        "pad",
        "eos",
        "bos",
        "unk",
        "mask",
        "sep",
        "cls",
        "special",
        "stop",
        "image",
        "video",
        "audio",
        "num",
        "max",
        "min",
        "per",
        "next",
        "start",
        "end",
        "first",
        "last",
        "new",
        "total",
        "vocab",
        "text",
        "prompt",
        "extra",
        "added",
        "think",
        "reasoning",
        "tool",
        "split",
        "moe",
    ]
)
_DATA_KEYS = frozenset(
    [
        "sort",
        "json",
        "primary",
        "foreign",
        "image",
        "images",
        "label",
        "labels",
        "text",
        "input",
        "output",
        "cache",
        "dict",
        "state",
        "query",
        "prompt",
        "response",
        "content",
        "messages",
        "target",
        "source",
        "feature",
        "column",
        "group",
        "partition",
        "map",
        "hot",
        "public",
        "value",
        "values",
        "kv",
        "ext",
        "lookup",
        "metric",
        "monitor",
        "data",
        "index",
        "order",
        "missing",
        "unexpected",
        "attention",
        "cross",
    ]
)
_SECRET_KEYS = frozenset(
    [
        "api",
        "access",
        "secret",
        "private",
        "encryption",
        "encrypt",
        "signing",
        "sign",
        "ssh",
        "license",
        "aes",
        "des",
        "rsa",
        "gpg",
        "pgp",
        "hmac",
        "auth",
        "account",
        "storage",
        "deploy",
        "service",
        "subscription",
        "wandb",
        "swanlab",
        "comet",
        "openai",
        "anthropic",
        "hf",
        "huggingface",
        "dd",
        "datadog",
        "stripe",
        "sendgrid",
        "cipher",
        "crypto",
        "shared",
        "activation",
        "product",
        "bot",
        "app",
        "client",
        "user",
        "webhook",
        "obs",
        "oss",
        "cos",
        "aws",
        "azure",
        "gcp",
        "aliyun",
        "tencent",
        "huawei",
        "hw",
        "minio",
        "kms",
        "jwt",
        "session",
        "flask",
        "django",
        "sentry",
        "admin",
        "root",
        "master",
        "google",
        "moonshot",
        "deepseek",
        "dashscope",
    ]
)
_COMPILER_PASSES = frozenset(
    [
        "fusion",
        "graph",
        "ge",
        "fe",
        "compile",
        "compiler",
        "opt",
        "optimization",
        "optimizer",
        "optimize",
        "forward",
        "backward",
        "train",
        "training",
        "disable",
        "enable",
        "skip",
        "ub",
        "ir",
        "llvm",
        "mlir",
        "inductor",
        "decompose",
        "lowering",
        "multi",
        "single",
        "first",
        "second",
        "third",
        "one",
        "two",
        "last",
        "num",
        "per",
        "max",
        "min",
        "render",
        "full",
        "each",
        "every",
        "all",
    ]
)
# Words before `pin` that make it something else: what is pinned, or has pins.
_PINNED = frozenset(["cpu", "core", "gpio", "led", "irq", "numa", "thread", "rank", "npu", "memory", "reset", "page"])
# What may follow the word for a secret without changing the meaning of the value.
_QUALIFIERS = frozenset(
    [
        "value",
        "id",
        "secret",
        "string",
        "str",
        "data",
        "base",
        "code",
        "b64",
        "base64",
        "key",
        "hash",
        "text",
        "plain",
        "raw",
        "new",
        "old",
        "current",
        "default",
        "prod",
        "dev",
        "test",
        "staging",
        "main",
        "primary",
        "backup",
        "read",
        "write",
        "ro",
        "rw",
    ]
)
# A name that ends like this says something about the secret, not what it is.
_ABOUT = frozenset(
    [
        "file",
        "files",
        "path",
        "paths",
        "dir",
        "directory",
        "folder",
        "sock",
        "socket",
        "home",
        "host",
        "hostname",
        "port",
        "url",
        "uri",
        "name",
        "names",
        "type",
        "types",
        "length",
        "len",
        "size",
        "limit",
        "count",
        "max",
        "min",
        "ttl",
        "timeout",
        "expiry",
        "expires",
        "expiration",
        "policy",
        "store",
        "mode",
        "enable",
        "enabled",
        "required",
        "prompt",
        "version",
        "manager",
        "provider",
        "prefix",
        "suffix",
        "field",
        "column",
        "format",
        "encoding",
        "algorithm",
        "alg",
        "bits",
        "pattern",
        "index",
        "position",
        "hint",
        "error",
        "errors",
        "exception",
        "rotation",
        "method",
        "helper",
        "command",
        "cmd",
        "env",
        "var",
        "memory",
        "domain",
        "domains",
        "depth",
        "backend",
        "engine",
        "driver",
        "issuer",
        "audience",
        "scope",
        "scopes",
        "rounds",
        "iterations",
        "class",
        "level",
        "stdin",
        "fd",
    ]
)


@lru_cache(maxsize=4096)
def secret_grade(name: str) -> int:
    """Return PLAIN, SUSPECT, SECRET or PASSWORD for the name of a variable, option or key."""
    if name in ("PWD", "OLDPWD", "GOOGLE_APPLICATION_CREDENTIALS"):
        return PLAIN  # working directories of the shell; a path
    if _CHINESE.search(name[-NAME_LIMIT:]):
        return PASSWORD
    words = [word.lower() for word in _NAME_WORD.findall(name[-NAME_LIMIT:])]
    while words and words[-1].isdigit():
        words.pop()
    if not words or words[-1] in _ABOUT:
        return PLAIN
    return max(_word_grade(words, place) for place in range(len(words)))


def _word_grade(words: List[str], place: int) -> int:
    word = words[place]
    if word in _PASSWORD_WORDS or _PASSWORD_ENDING.match(word):
        return PASSWORD
    if word in _SECRET_WORDS or word.endswith(_ENDINGS):
        return SECRET
    before = words[place - 1] if place else ""
    last = all(later in _QUALIFIERS or later.isdigit() for later in words[place + 1 :])
    if word.endswith(("token", "tokens")):
        return _token_grade(word, before, last)
    if word in ("key", "keys", "pass"):
        return _key_grade(word, before) if last else PLAIN
    if word == "pin" and place == len(words) - 1 and before not in _PINNED:
        return PASSWORD
    if word in _SUSPECT_WORDS and last:
        return SECRET if word in ("auth", "sas") and before else SUSPECT
    return PLAIN


def _token_grade(word: str, before: str, last: bool) -> int:
    if word in ("token", "tokens") and before in _TEXT_TOKENS:
        return PLAIN
    if word == "tokens":
        return SECRET if before in ("access", "api", "auth", "user", "refresh", "bearer") else SUSPECT
    return SECRET if last else SUSPECT


def _key_grade(word: str, before: str) -> int:
    if word == "pass":
        return PLAIN if before in _COMPILER_PASSES else SECRET if before else SUSPECT
    if before in _DATA_KEYS:
        return PLAIN
    return SECRET if before in _SECRET_KEYS else SUSPECT
