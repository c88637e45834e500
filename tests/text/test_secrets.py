"""Secrets are flagged by place and kind; ordinary text is not. The secrets here are put together at run time."""

from __future__ import annotations

import base64
import json
import string
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everthread.text import secrets
from everthread.text.secrets import MAX_FLAGS, SecretFlag, find_secrets, redact_secrets

ALPHANUMERIC = string.ascii_letters + string.digits
MIXED = "a1B2c3D4e5F6"


def some(length: int, alphabet: str = ALPHANUMERIC) -> str:
    return (alphabet * (length // len(alphabet) + 1))[:length]


def web_token() -> str:
    parts = [{"alg": "HS256", "typ": "JWT"}, {"sub": "1234567890", "name": "Somebody"}]
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*encoded, some(43)])


SECRETS = {
    "anthropic": "sk-" + "ant-api03-" + some(93),
    "aws": "AK" + "IA" + some(16, string.ascii_uppercase),
    "bearer": "Authorization: Bea" + "rer " + some(60),
    "password": "DB_PASS" + "WORD=" + "hunt" + "er2!x",
    "azure-storage": "Account" + "Key=" + some(86) + "==",
    "basic-auth": "postgresql://admin" + ":" + some(8) + "@db.example.org/app",
    "discord": "MT" + some(22) + "." + some(6) + "." + some(27),
    "github": "gh" + "p_" + some(36),
    "gitlab": "gl" + "pat-" + some(20),
    "google": "AI" + "za" + some(35),
    "groq": "gs" + "k_" + some(52),
    "hugging-face": "h" + "f_" + some(34, string.ascii_letters),
    "jwt": web_token(),
    "mailchimp": some(32, string.ascii_lowercase + string.digits) + "-us" + "12",
    "npm": "//registry." + "npmjs.org/:_auth" + "Token=np" + "m_" + some(36),
    "openai": "sk-" + some(20) + "T3Blbk" + "FJ" + some(20),
    "openrouter": "sk-" + "or-v1-" + some(64, "0123456789abcdef"),
    "private-key": "-----BEGIN OPENSSH " + "PRIVATE KEY-----",
    "pypi": "pypi-" + "AgEIcHlwaS5vcmc" + some(80),
    "sendgrid": "SG" + "." + some(22) + "." + some(43),
    "slack": "xo" + "xb-" + some(12, string.digits) + "-" + some(24, string.ascii_lowercase),
    "square": "sq0" + "csp-" + some(43),
    "stripe": "sk_" + "live_" + some(24),
    "telegram": some(9, "123456789") + ":A" + "A" + some(33),
    "api-key": "MY_API" + "_KEY='" + some(32, "0123456789abcdef") + "'",
    "sk-key": "sk" + "-" + some(32, "0123456789abcdef"),
    "xai": "x" + "ai-" + some(80),
    "twilio": "A" + "C" + some(32, string.digits + "abcdef"),
}


@pytest.mark.parametrize("kind", SECRETS)
def test_a_pasted_secret_is_flagged_where_it_stands(kind: str) -> None:
    before = "please use this one: "
    text = f"{before}{SECRETS[kind]}\nand tell nobody"
    flags = [flag for flag in find_secrets(text) if flag.kind == kind]
    assert flags
    assert all(len(before) <= flag.start < flag.end <= len(before) + len(SECRETS[kind]) for flag in flags)


@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_is_found_inside_json_and_between_chinese(kind: str) -> None:
    in_json = json.dumps({"role": "user", "content": SECRETS[kind]})
    assert kind in {flag.kind for flag in find_secrets(in_json)}
    assert kind in {flag.kind for flag in find_secrets(f"我的密钥是{SECRETS[kind]}。谢谢")}


@pytest.mark.parametrize(
    "text",
    [
        "sk" + "-" + some(48, MIXED),
        "OPENAI_API" + "_KEY=sk" + "-proj-" + some(46, MIXED),
        json.dumps({"api" + "Key": some(39, MIXED)}),
        json.dumps(json.dumps({"api" + "Key": some(39, MIXED)})),
        "client_" + "secret: GOC" + "SPX-" + some(28, MIXED),
        "client_" + "secret=" + some(40, MIXED),
        "the GOC" + "SPX-" + some(28, MIXED),
        "the sk-" + "ant-api03-" + some(40, MIXED),
        "API" + "_KEY='zz-key03-" + string.ascii_lowercase + some(20, MIXED) + "-AA'",
        "ACCESS" + "_TOKEN=" + string.ascii_lowercase + "x" * 20 + some(20, MIXED),
        "webhook" + 'Secret: "' + some(40, MIXED) + '"',
        "signing" + "_key = '" + some(40, MIXED.lower()) + "'",
    ],
)
def test_keys_are_known_by_their_names_and_by_how_they_begin(text: str) -> None:
    redacted = redact_secrets(text)
    assert "[redacted: " in redacted
    assert some(20, MIXED) not in redacted
    assert some(20, MIXED.lower()) not in redacted
    assert "zz-key03" not in redacted


@pytest.mark.parametrize(
    "text",
    [
        "task-" + some(32, "0123456789abcdef"),
        "sk-learn-extra-1-pipeline-with-a-long-name-and-a-2",
        "api_key=os.environ['OPENAI_API_KEY2']",
        "api_key = settings.openai_api_key_v2_default_of_all",
        "API_KEY=YOUR_API_KEY_HERE_PLEASE_123",
        'apiKey="${SECRET_TOKEN_Abc12345678901234}"',
        "apiKey: getApiKeyFromVault2ForUser(7)",
        "client_secret_key_from_environment_v2: str",
        "access_token: the_token_of_the_second_account_v2",
        "sk-ant-api03-YOUR-KEY-GOES-HERE-AND-NOWHERE-ELSE",
        "refresh_token=fetchTheRefreshTokenOfUser42And7(client)",
    ],
)
def test_names_of_keys_in_code_are_not_flagged(text: str) -> None:
    assert find_secrets(text) == ()


WORD = "pass" + "word"


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("aws_secret_access" + f"_key={some(40)}", "aws_secret_access" + "_key=[redacted: aws]"),
        (f"{WORD}=hunt" + "er2x", f"{WORD}=[redacted: password]"),
        (f"{WORD}: hunt" + "er2x, thanks", f"{WORD}: [redacted: password], thanks"),
        ("passwd: Tr0ub" + "4dor&3", "passwd: [redacted: password]&3"),
        (f'{{"db_{WORD}": "corr3ct' + 'horse"}', f'{{"db_{WORD}": "[redacted: password]"}}'),
        (f"export PG{WORD.upper()}='s3" + "cret!'", f"export PG{WORD.upper()}='[redacted: password]'"),
        ("密码是 abc" + "12345，别告诉别人", "密码是 [redacted: password]，别告诉别人"),
        (f"my {WORD} is correct-ho" + "rse-9", f"my {WORD} is [redacted: password]"),
        (f"My {WORD} is correct-ho" + "rse-battery", f"My {WORD} is [redacted: password]"),
        (
            f"The {WORD} for the staging server is now hunt" + "er2-Pr0d, ok",
            f"The {WORD} for the staging server is now [redacted: password], ok",
        ),
        ("passphrase: blue-moon-" + "rise-4 please", "passphrase: [redacted: password] please"),
        ("the passcode is 482" + "913", "the passcode is [redacted: password]"),
        ("the admin login is root / Pass" + "w0rd!", "the admin login is root / [redacted: password]"),
        ("账号是 root，密码是 Pass" + "w0rd!，别外传", "账号是 root，密码是 [redacted: password]，别外传"),
        ("credentials: admin:S3cr" + "etPw", "credentials: admin:[redacted: password]"),
        ("curl -u admin:S3cr" + "etPw https://example.org", "curl -u admin:[redacted: password] https://example.org"),
        (
            "curl -s https://example.org/?a=1&b=2 \\\n  --user 'admin:S3cr" + "etPw'",
            "curl -s https://example.org/?a=1&b=2 \\\n  --user 'admin:[redacted: password]'",
        ),
        ("mysqldump -h db -uroot -pS3cr" + "etPw shop", "mysqldump -h db -uroot -p[redacted: password] shop"),
        ("AWS_SECRET_ACCESS" + f"_KEY={some(39)}", "AWS_SECRET_ACCESS" + "_KEY=[redacted: aws]"),
        ("AWS_SECRET_ACCESS" + f"_KEY={some(16, MIXED)}.", "AWS_SECRET_ACCESS" + "_KEY=[redacted: aws]."),
        ('"client_' + 'secret": "Zx81-qwer' + 'ty-uiop"', '"client_' + 'secret": "[redacted: api-key]"'),
        ("Authorization: Bea" + f"rer {some(60)}==\nHost: x", "Authorization: Bearer [redacted: bearer]\nHost: x"),
    ],
)
def test_what_is_named_a_secret_and_looks_like_one_is_taken_out(text: str, redacted: str) -> None:
    assert redact_secrets(text) == redacted
    assert len(find_secrets(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        f"{WORD}: see the manual",
        f"The {WORD}: it must have 8 characters and a digit",
        f"{WORD}: required",
        f"{WORD} = get_{WORD}(user1)",
        f"login(name, {WORD}={WORD}2)",
        f"{WORD}: str = Field(min_length=8)",
        f"{WORD}=user1.{WORD}",
        f"{WORD}=os.environ['DB_1']",
        f"{WORD}=$DB1_PASS {WORD}=${{PASS1}} {WORD}=<your {WORD} 1> {WORD}=***** {WORD}={{p1}}",
        f"if {WORD} == input1:",
        f"{WORD}: https://example.org/reset1",
        "密码：请看第3页的说明",
        "密码是什么时候改的？",
        "Authorization: Bearer YOUR_ACCESS_TOKEN_GOES_HERE",
        "Authorization: Bearer <token> is what the bearer of 2 rings sends",
        "aws_secret_access_key=YOUR_KEY",
        "AWS_SECRET_ACCESS_KEY=YourSecretAccessKeyHere",
        "aws_secret_access_key=getSecretAccessKey2(name)",
        "secret_access_key: credentials2provider.secret",
        f"my {WORD} is wrong",
        f"my {WORD} is wrong!!",
        f"My {WORD} is not working, what now?",
        f"my {WORD} is long",
        f"The {WORD} is incorrect.",
        f"the {WORD} is case-sensitive and out-of-date",
        f"the {WORD} is 128-bit encrypted, the other {WORD} is sha256-hashed",
        f"my {WORD} is required to have 8 characters",
        f"The {WORD} for step 2 is mandatory",
        "the passphrase is optional",
        "我的密码是错的，登录不了",
        "密码是必填的，至少8位",
        "密码为空",
        "账号是管理员，登录是用邮箱",
        "the login is Google / OAuth2",
        "login: https://example.org/auth2",
        "login is at 10:30:45pm",
        "login: localhost:8080/path2x",
        "credentials: include",
        "curl -u admin:$PASS1 https://example.org",
        f"curl -u user:{WORD} https://example.org",
        "curl https://example.org && docker run -u 1000:1000 image",
        "curl -s https://example.org | sort -u key:field1",
        "psql -p5432 -U me shop2",
        "mysql -h db -P3306 -p shop2",
        'mysql -p"$MYSQL_PASS1" shop',
        "mkdir -p/tmp/data1",
        '"client_secret": "YOUR-CLIENT-SECRET1"',
        '"client_secret": "the-name-of-it-22"',
    ],
)
def test_prose_and_code_about_passwords_are_not_flagged(text: str) -> None:
    assert find_secrets(text) == ()


def test_each_rule_is_tried_where_one_of_its_literals_stands() -> None:
    literals = [literal for literal, _ in secrets._RULE_OF_LITERAL]
    assert all(7 in secrets._places(f"before {literal} after", 9)[literal] for literal in literals)
    assert {*secrets._places("".join(literals), 9)} == {*literals}, "though they stand side by side"


def test_a_flag_holds_no_part_of_the_secret() -> None:
    (flag,) = find_secrets(f"token {SECRETS['github']}")
    assert flag == SecretFlag(kind="github", start=6, end=6 + len(SECRETS["github"]))


def test_two_addresses_with_passwords_close_together_are_two_flags() -> None:
    address = "https://user" + ":" + "password@host"
    assert len(find_secrets(f"{address} {address}")) == 2


def test_flags_come_in_the_order_of_the_text_and_are_capped() -> None:
    flags = find_secrets(" ".join([SECRETS["stripe"], SECRETS["github"]] * MAX_FLAGS))
    assert len(flags) == MAX_FLAGS
    assert [flag.start for flag in flags] == sorted(flag.start for flag in flags)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "What is an API key, and where do I put my password?",
        "see https://example.org/a/very/long/path?token=&user=me#part and mail me@example.org",
        "TASK-1234 ACCOUNTABILITY SKELETONS APARTMENTS " + "0123456789abcdef" * 4,
        "from notifications.manager import NotificationServiceManagers.create.something_else_entirely",
        "git@github.com:owner/repository.git at 1700000000:0",
        "我们明天去北京参加会议，讨论项目的进展情况和预算安排，密码另行通知。",
        "data:image/png;base64," + base64.b64encode(bytes(range(256)) * 40).decode(),
    ],
)
def test_ordinary_text_and_code_are_not_flagged(text: str) -> None:
    assert find_secrets(text) == ()


def test_no_message_of_real_conversations_is_flagged(shared: Path) -> None:
    texts = [text for file in sorted((shared / "data").rglob("*.json")) for text in strings_in(file)]
    assert len(texts) > 10_000
    assert [text for text in texts if find_secrets(text)] == []


def strings_in(file: Path) -> Iterator[str]:
    waiting = [json.loads(file.read_bytes())]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)


@pytest.mark.parametrize(
    "literal", ["eyJ", "@", "sk-T3Blbk" + "FJ", "//:_authToken=", "AC", "a", " ", "pass" + "word="]
)
def test_a_megabyte_of_one_literal_is_let_go(literal: str) -> None:
    assert find_secrets(literal * (1_000_000 // len(literal))) == ()


@given(text=st.text(alphabet=st.characters(exclude_categories=())))
def test_any_text_is_looked_through_without_harm(text: str) -> None:
    flags = find_secrets(text + " " * 3 + "x" * 40)
    assert flags == find_secrets(text + " " * 3 + "x" * 40)
    assert all(0 <= flag.start < flag.end <= len(text) for flag in flags)


# --- taking them out ---


@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_is_replaced_by_its_kind_and_all_else_stays(kind: str) -> None:
    text = f"我的密钥是{SECRETS[kind]}。谢谢\nplease use it"
    redacted = redact_secrets(text)
    assert SECRETS[kind] not in redacted
    assert f"[redacted: {kind}]" in redacted
    assert redacted.startswith("我的密钥是")
    assert redacted.endswith("\nplease use it") or kind == "private-key"


def test_of_a_private_key_nothing_is_left() -> None:
    key = SECRETS["private-key"] + "\n" + f"{some(64)}\n" * 20 + "-----END OPENSSH " + "PRIVATE KEY-----"
    assert redact_secrets(f"a {key} b {key[:200]}") == "a -----[redacted: private-key] b -----[redacted: private-key]"


def test_a_token_longer_than_the_rule_reaches_is_taken_out_whole() -> None:
    token = web_token().rpartition(".")[0] + "." + some(9_000)
    assert redact_secrets(f"a {token} b") == "a [redacted: jwt] b"


def test_more_secrets_than_are_flagged_are_all_taken_out() -> None:
    text = " ".join([SECRETS["stripe"], SECRETS["github"]] * MAX_FLAGS)
    assert set(redact_secrets(text).split("] ")) <= {"[redacted: stripe", "[redacted: github", "[redacted: github]"}


def test_a_secret_behind_thousands_of_decoys_is_taken_out() -> None:
    assert SECRETS["twilio"] not in redact_secrets("SK AC " * 3_000 + SECRETS["twilio"])


@given(text=st.text(alphabet=st.characters(exclude_categories=())))
def test_what_is_taken_out_once_is_out_and_ordinary_text_is_the_same(text: str) -> None:
    redacted = redact_secrets(f"{text} {SECRETS['github']}")
    assert redact_secrets(redacted) == redacted
    assert redacted.endswith("[redacted: github]")
