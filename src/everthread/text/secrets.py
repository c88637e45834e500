"""Notice secrets pasted into a message by mistake: their kind and position, never the secret itself.

The entry is flagged and its text is not altered. The rules are those of detect-secrets that know a form of
key by its looks, and a few for newer forms it does not have yet. Left out are the rules that flag ordinary
text and code: entropy and keywords, public IP addresses, and the passwords of IBM, Cloudant, SoftLayer and
Artifactory that are known only by the name of their variable or by two letters. A password is known by a rule of our
own: what stands after the word and a mark or `is`, or is given to curl or mysql, if it looks like one (letters with a
digit or a sign) and not like prose or code; a key after `api_key` and the like in the same way. No rule is ever
verified online.

This runs for every message on its way in, so a text is read once: each rule has literals, one of which is in every
secret of its kind, and one pattern finds them all by their rarest characters. A rule's own pattern is tried only where
one of its literals stands. detect-secrets takes 0.3 s to import, which is paid when one of its literals is first met.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import islice
from operator import attrgetter

MAX_FLAGS = 100
"""As many flags are kept for one text, those that come first."""

_MAX_PLACES = 2_000
"""So often at most a literal is looked at in one text …"""
_MAX_ANCHORS = 100_000
"""… and so many places in all: together they bound what 10 MB of literals can cost."""

_REACH_CHARS = 2_048
"""How far after its literal a secret may end; the longest JSON Web Tokens are found by their beginning."""

_END_OF_KEY = re.compile(r"-----END [^-\n]{0,80}?PRIVATE KEY[^-\n]{0,80}-----|^Private-MAC: *\S+", re.MULTILINE)
_REST_OF_WORD = re.compile(r"[A-Za-z0-9_=+/~-]*(?:\.[A-Za-z0-9_=+/~-]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretFlag:
    """Where in a text a secret seems to stand."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    kind: str
    detector: str
    """Where detect-secrets keeps the patterns (`module.Class`), or a pattern of our own. The secret is the group that
    has a name, or all of it."""
    literals: tuple[str, ...]
    """One of these is in every secret of the kind."""
    around: int = 0
    """How far on both sides of its literal the secret is sought; 0 if each secret begins with it."""


_PASSWORD_WORDS = ("password", "Password", "PASSWORD", "passwd", "Passwd", "PASSWD", "密码", "口令")
# Letters with a digit or a sign, and nothing that code has there: a call, an index, an attribute, a variable of a
# template, another name for the same field.
_IN_PASSWORD = r"[^\s\"'`<>{}\[\]()*$,;&|，。；、]"
_LOOKS_STRONG = (
    rf"(?={_IN_PASSWORD}{{0,127}}?[A-Za-z])(?={_IN_PASSWORD}{{0,127}}?[0-9!@#%^?~+])"
    rf"(?!{_IN_PASSWORD}{{0,127}}?passw(?:or)?d)"
)
_IS_CODE = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?![^\s,;)\"'`])|(?:https?|file)://"
_PASSWORD = (
    r"(?i)(?:passw(?:or)?d|密码|口令)[\"'`]?\s{0,3}(?:=(?!=)|:=?|：|是|为)\s{0,3}[\"'`]?"
    rf"(?P<secret>(?!{_IS_CODE}){_LOOKS_STRONG}{_IN_PASSWORD}{{6,128}}+)(?![(\[$])"
)
# After `is` prose goes on: what stands there is a password if it has a digit, or a sign or a capital letter within, or
# is three words with hyphens. Prose also counts (`128-bit`) and names algorithms (`sha256-hashed`).
_LIKE_NO_WORD = (
    rf"(?={_IN_PASSWORD}{{0,127}}?(?:[0-9]|[!@#%^~+][A-Za-z0-9]|(?-i:[a-z][A-Z]))|(?:[a-z]{{3,20}}-){{2,8}}[a-z]{{3,20}})"
    rf"(?!{_IN_PASSWORD}{{0,127}}?passw(?:or)?d|[0-9]+-[a-z]|(?:sha|md|base|aes|rsa|argon|pbkdf|utf|oauth)-?[0-9])"
)
_TOLD_PASSWORD = (
    r"(?i)pass(?:word|wd|phrase|code)(?:\s{1,3}(?:for|of|to|on)\s[^\n.,;:!?]{1,40}?)?"
    r"(?:\s{1,3}(?:is|was)(?:\s{1,3}now)?\s{0,3}:?"
    r"|\s{0,3}(?:=(?!=)|:=?))\s{1,3}[\"'`]?"
    rf"(?P<secret>(?!{_IS_CODE}){_LIKE_NO_WORD}{_IN_PASSWORD}{{6,128}}+)(?![(\[$])"
)
_LOGIN = (
    r"(?i)(?:login|credentials)\s{0,3}(?:is|are|was|:|=(?!=)|是|为|：)\s{0,3}[\"'`]?[a-z][\w.@-]{1,63}(?::|\s{1,3}/\s{1,3})"
    rf"(?P<secret>(?!/|{_IS_CODE}){_LIKE_NO_WORD}(?:(?!/){_IN_PASSWORD}){{6,128}}+)(?![/(\[$])"
)
_OPTIONS = r"(?:[^\n|]|(?<=\\)\n){0,200}?\s"
_PASSED_TO_CURL = (
    rf"curl{_OPTIONS}(?:-u\s{{0,3}}|--user[\s=]\s{{0,3}})[\"'`]?[^\s:\"'`$]{{1,64}}:"
    rf"(?P<secret>{_LOOKS_STRONG}{_IN_PASSWORD}{{6,128}}+)(?![(\[$])"
)
_PASSED_TO_MYSQL = (
    rf"(?:mysql|mariadb)[\w-]{{0,10}}{_OPTIONS}-p[\"'`]?(?P<secret>{_LOOKS_STRONG}{_IN_PASSWORD}{{6,128}}+)(?![(\[$])"
)

_KEY_NAMES = (
    *(("api", "key"), ("secret", "key"), ("signing", "key"), ("encryption", "key")),
    *(("client", "secret"), ("webhook", "secret")),
    *(("api", "token"), ("access", "token"), ("auth", "token"), ("refresh", "token")),
)
# After its name a key is known by its looks: hexadecimal digits, small letters with four digits, or small and capital
# letters with two, wherever in it they stand; a short one is in quotes. What has one case and a `_` or `-` is
# the name of another variable.
_API_KEY = (
    rf"(?i:{'|'.join(f'{first}[_-]?{second}' for first, second in _KEY_NAMES)})"
    r"[\"'`\\]{0,3}\s{0,3}(?:=(?!=)|:=?|：|是|为)\s{0,3}[\"'`\\]{0,3}"
    r"(?P<secret>(?:[0-9a-f]{24,200}|[0-9A-F]{24,200}|(?=(?:[a-z]{0,40}?[0-9]){4})[a-z0-9]{32,200}"
    r"|(?=(?:[\w-]{0,200}?[0-9]){2})(?=[\w-]{0,200}?[a-z])(?=[\w-]{0,200}?[A-Z])"
    r"(?:[A-Za-z0-9_-]{20,200}|[A-Za-z0-9_-]{16,19}(?=[\"'`\\])))(?![\w(\[$-]))"
)
_API_KEY_WORDS = tuple(
    dict.fromkeys(
        written
        for first, second in _KEY_NAMES
        for between in ("_", "-", "")
        for name in (f"{first}{between}{second}", f"{first.title()}{between}{second.title()}")
        for written in (name, name.upper(), name[0].lower() + name[1:])
    )
)
# Of OpenAI and those who took over its form. Before it stands no letter: `task-` and `disk-` have other endings.
_SK_KEY = (
    r"(?<![A-Za-z0-9])sk-(?![\w-]{0,100}T3BlbkFJ)(?:(?:proj|svcacct|admin|None)-[\w-]{40,200}"
    r"|(?=[A-Za-z0-9]{0,40}?[0-9])[A-Za-z0-9]{32,100})(?![\w-])"
)

_RULES = (
    _Rule(
        kind="aws",
        detector="aws.AWSKeyDetector",
        literals=("AKIA", "ASIA", "ABIA", "ACCA", "A3T", "aws", "AWS", "Aws"),
    ),
    _Rule(kind="azure-storage", detector="azure_storage_key.AzureStorageKeyDetector", literals=("AccountKey=",)),
    _Rule(kind="basic-auth", detector="basic_auth.BasicAuthDetector", literals=("@",), around=200),
    _Rule(
        kind="discord",
        detector="discord.DiscordBotTokenDetector",
        # A number in base64: what the pattern alone also finds are long dotted names in code.
        literals=("MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"),
    ),
    _Rule(
        kind="github",
        detector="github_token.GitHubTokenDetector",
        literals=("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    ),
    _Rule(
        kind="gitlab",
        detector="gitlab_token.GitLabTokenDetector",
        literals=(
            *("glpat-", "gldt-", "glft-", "glsoat-", "glrt-", "glcbt-", "glimt-", "glptt-", "glagent-", "gloas-"),
            "GR1348941",
        ),
    ),
    _Rule(kind="jwt", detector="jwt.JwtTokenDetector", literals=("eyJ",)),
    _Rule(kind="mailchimp", detector="mailchimp.MailchimpDetector", literals=("-us",), around=36),
    _Rule(kind="npm", detector="npm.NpmDetector", literals=(":_authToken=",), around=200),
    _Rule(kind="openai", detector="openai.OpenAIDetector", literals=("T3BlbkFJ",), around=128),
    _Rule(
        kind="private-key",
        detector="private_key.PrivateKeyDetector",
        literals=("BEGIN ", "PuTTY-User-Key-File"),
    ),
    _Rule(kind="pypi", detector="pypi_token.PypiTokenDetector", literals=("pypi-Ag",)),
    _Rule(kind="sendgrid", detector="sendgrid.SendGridDetector", literals=("SG.",)),
    _Rule(kind="slack", detector="slack.SlackDetector", literals=("xox", "https://hooks.slack.com/")),
    _Rule(kind="square", detector="square_oauth.SquareOAuthDetector", literals=("sq0csp-",)),
    _Rule(kind="stripe", detector="stripe.StripeDetector", literals=("sk_live_", "rk_live_")),
    _Rule(kind="telegram", detector="telegram_token.TelegramBotTokenDetector", literals=(":AA",), around=64),
    _Rule(kind="twilio", detector="twilio.TwilioKeyDetector", literals=("AC", "SK")),
    _Rule(
        kind="anthropic",
        detector=r"sk-ant-[a-z]{1,20}[0-9]{2}-(?=[A-Za-z_-]{0,200}[0-9])[A-Za-z0-9_-]{20,}",
        literals=("sk-ant-",),
    ),
    _Rule(kind="github", detector=r"github_pat_[A-Za-z0-9_]{82}", literals=("github_pat_",)),
    _Rule(kind="google", detector=r"AIza[0-9A-Za-z_-]{35}(?![\w-])", literals=("AIza",)),
    _Rule(kind="hugging-face", detector=r"hf_[A-Za-z]{34}(?!\w)", literals=("hf_",)),
    _Rule(kind="groq", detector=r"gsk_[A-Za-z0-9]{40,}(?!\w)", literals=("gsk_",)),
    _Rule(kind="openrouter", detector=r"sk-or-v1-[0-9a-f]{64}(?!\w)", literals=("sk-or-v1-",)),
    _Rule(
        kind="aws",
        # An excerpt or a copy may lack some of its forty characters.
        detector=r"(?i)secret_?access_?key[\"']?\s{0,3}[=:]\s{0,3}[\"']?"
        r"(?P<secret>(?:[0-9A-Za-z/+]{32,200}|(?=[A-Z/+]{0,31}[0-9])(?=[0-9/+]{0,31}[A-Z])[0-9A-Za-z/+]{16,31})"
        r"(?![\w/+=(\[$-]|\.\w))",
        literals=("secret_access_key", "SECRET_ACCESS_KEY", "SecretAccessKey", "secretAccessKey"),
    ),
    _Rule(
        kind="bearer",
        detector=r"(?i)bearer\s{1,3}(?P<secret>(?=[^\s\"']{0,80}?\d)[A-Za-z0-9._~+/-]{20,}=*)",
        literals=("Bearer", "bearer", "BEARER"),
    ),
    _Rule(kind="password", detector=_PASSWORD, literals=_PASSWORD_WORDS),
    _Rule(
        kind="password",
        detector=_TOLD_PASSWORD,
        literals=(*_PASSWORD_WORDS[:-2], "passphrase", "Passphrase", "passcode", "Passcode"),
    ),
    _Rule(kind="password", detector=_LOGIN, literals=("login", "Login", "credentials", "Credentials")),
    _Rule(kind="password", detector=_PASSED_TO_CURL, literals=("curl",)),
    _Rule(kind="password", detector=_PASSED_TO_MYSQL, literals=("mysql", "mariadb")),
    _Rule(kind="xai", detector=r"xai-[A-Za-z0-9]{40,}(?![\w-])", literals=("xai-",)),
    _Rule(kind="google", detector=r"GOCSPX-[A-Za-z0-9_-]{20,}", literals=("GOCSPX-",)),
    _Rule(kind="sk-key", detector=_SK_KEY, literals=("sk-",)),
    _Rule(kind="api-key", detector=_API_KEY, literals=_API_KEY_WORDS),
    _Rule(kind="npm", detector=r"npm_[A-Za-z0-9]{36}(?!\w)", literals=("npm_",)),
)


_RULE_OF_LITERAL = tuple((literal, rule) for rule in _RULES for literal in rule.literals)
_COMMON = "etaoinsrlhdcumpf_-.:/=gybwvk0123456789"
"""Characters that text and code are full of, the most common first: a literal is sought by another if it has one."""


def _anchor(literal: str) -> int:
    """Where in a literal the character stands by which it is sought: the first of its rarest ones."""
    return max(range(len(literal)), key=lambda at: (_COMMON.find(literal[at]) % (len(_COMMON) + 1), -at))


def _anchored() -> dict[str, list[tuple[str, int]]]:
    """The literals and their anchors, by the characters that are sought."""
    found: dict[str, list[tuple[str, int]]] = {}
    for literal in dict.fromkeys(literal for literal, _ in _RULE_OF_LITERAL):
        at = _anchor(literal)
        found.setdefault(literal[at], []).append((literal, at))
    return found


_ANCHORED = _anchored()


def _pattern_of(char: str, literals: Iterable[tuple[str, int]]) -> str:
    """This character where one of its literals is around it; the character alone is taken, since literals overlap."""
    endings: dict[str, list[str]] = {}
    for literal, at in literals:
        endings.setdefault(literal[:at], []).append(literal[at + 1 :])
    starts: dict[tuple[int, str], list[str]] = {}
    for start, rest in endings.items():
        starts.setdefault((len(start), _trie(rest)), []).append(re.escape(start + char))
    around = [
        (f"(?<=(?:{'|'.join(some)}))" if length else "") + (f"(?={rest})" if rest else "")
        for (length, rest), some in starts.items()
    ]
    return re.escape(char) if "" in around else re.escape(char) + f"(?:{'|'.join(around)})"


def _trie(endings: Iterable[str]) -> str:
    """A pattern of texts by their first characters, then by their next; nothing where one of them is empty."""
    by_first: dict[str, set[str]] = {}
    for ending in endings:
        if not ending:
            return ""
        by_first.setdefault(ending[0], set()).add(ending[1:])
    return f"(?:{'|'.join(re.escape(first) + _trie(rest) for first, rest in sorted(by_first.items()))})"


_anchors = re.compile("|".join(_pattern_of(char, literals) for char, literals in _ANCHORED.items())).finditer


def find_secrets(text: str) -> tuple[SecretFlag, ...]:
    """Give a flag for each position that looks like a secret, in the order of the text; most texts have none."""
    return tuple(_found(_places(text, _MAX_PLACES, _MAX_ANCHORS), text)[:MAX_FLAGS])


def _found(places: Mapping[str, Sequence[int]], text: str) -> list[SecretFlag]:
    if not places:
        return []
    flags = {
        flag
        for literal, rule in _RULE_OF_LITERAL
        if literal in places
        for start, end in _windows(places[literal], rule.around)
        for flag in _flags(rule, text, start, end)
    }
    return sorted(flags, key=attrgetter("start", "end", "kind"))


def _places(text: str, most: int, most_anchors: int | None = None) -> dict[str, list[int]]:
    """Where each literal stands, of those that the text holds; the first of them, if there are more than so many."""
    places: dict[str, list[int]] = {}
    for match in islice(_anchors(text), most_anchors):
        anchor = match.start()
        for literal, at in _ANCHORED[text[anchor]]:
            start = anchor - at
            if text.startswith(literal, start) and len(some := places.setdefault(literal, [])) < most:
                some.append(start)
    return places


def redact_secrets(text: str, start: int = 0, end: int | None = None) -> str:
    """The text with a placeholder such as `[redacted: github]` wherever a secret seems to stand; all else as it was.
    Of a part of it (`start` to `end`) what stands around it is read too: half a secret is not recognised as one.

    Every position is looked at, however many there are: what a flag may miss, a summary model must not see.
    """
    end = len(text) if end is None else end
    pieces: list[str] = []
    done = start
    read = 0
    for flag in _found(_places(text, len(text)), text):
        if flag.end > read:
            is_new, read = flag.start >= read, _end_of_secret(flag, text)
            if read > start and flag.start < end:
                pieces += [text[done : max(done, flag.start)], *([f"[redacted: {flag.kind}]"] if is_new else [])]
                done = read
    return "".join((*pieces, text[done:end]))


def _end_of_secret(flag: SecretFlag, text: str) -> int:
    """Where the secret itself ends: of a private key the rule knows the head only, of a long token the beginning."""
    if flag.kind == "private-key":
        closing = _END_OF_KEY.search(text, flag.end)
        return closing.end() if closing else len(text)
    if flag.kind in ("basic-auth", "password"):  # the address behind the password, a sentence's end, are no secrets
        return flag.end
    return _REST_OF_WORD.match(text, flag.end).end()  # type: ignore[union-attr]  # it matches nothing at least


def _windows(positions: Iterable[int], around: int) -> Iterator[tuple[int, int]]:
    """Where to look for secrets whose literals stand at these positions. Those that stand close together share a
    window, so that no character is looked at for each of them."""
    done = -1
    for at in positions:
        if not around:
            yield at, at + _REACH_CHARS
        elif at > done:
            done = at + around
            yield max(0, at - around), done + around


def _flags(rule: _Rule, text: str, start: int, end: int) -> Iterator[SecretFlag]:
    for pattern in _patterns(rule.detector):
        for match in _matches(pattern, text, start, end, is_around=rule.around > 0):
            if rule.kind != "jwt" or _is_web_token(match[0]):
                first, last = match.span(match.lastgroup or 0)
                yield SecretFlag(kind=rule.kind, start=first, end=last)


def _matches(pattern: re.Pattern[str], text: str, start: int, end: int, *, is_around: bool) -> Iterator[re.Match[str]]:
    if is_around:
        return pattern.finditer(text, start, end)
    match = pattern.match(text, start, end)
    return iter((match,) if match else ())


@cache
def _patterns(detector: str) -> tuple[re.Pattern[str], ...]:
    module, _, name = detector.partition(".")
    if not name.endswith("Detector"):
        return (re.compile(detector),)
    return tuple(getattr(import_module(f"detect_secrets.plugins.{module}"), name).denylist)


def _is_web_token(text: str) -> bool:
    """Tell whether a match decodes as a JSON Web Token, which detect-secrets asks for beyond its pattern."""
    detector = import_module("detect_secrets.plugins.jwt").JwtTokenDetector
    return bool(detector.is_formally_valid(text))
