"""Test that secrets are masked in texts, JSON and messages, in all their usual encodings."""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import json
import random
import re
import string
import threading
import traceback
from collections.abc import Callable, Iterator
from types import MappingProxyType
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given, strategies as st
from pydantic import SecretBytes, SecretStr

from agents_tools import register_secret
from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.text import forget_secret, secrets as _secrets
from agents_tools.text.forms import MASK
from agents_tools.text.secret_matcher import SecretMatcher
from agents_tools.text.secrets import mask, mask_json, mask_registered
from tests.pace import at_most
from tests.scale import LARGE

VALUE = "p@ss/w+rd ünd=so"


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start each test without registered secrets."""
    monkeypatch.setattr(_secrets, "_registered", {})
    monkeypatch.setattr(_secrets, "_matcher", SecretMatcher(()))


@pytest.fixture
def registered() -> Iterator[str]:
    """Register a secret with characters that every encoding changes."""
    register_secret(VALUE)
    yield VALUE
    forget_secret(VALUE)


def test_a_registered_value_is_masked_until_it_is_unregistered() -> None:
    """Tests and rotated keys need to remove a value."""
    register_secret("hunter2-hunter2")
    register_secret("hunter2-hunter2")

    assert mask("it is hunter2-hunter2, really") == "it is ***, really"
    forget_secret("hunter2-hunter2")
    forget_secret("hunter2-hunter2")
    assert mask("it is hunter2-hunter2, really") == "it is hunter2-hunter2, really"


@pytest.mark.parametrize(
    "value",
    [
        "violet-tulip",
        b"violet-tulip",
        SecretStr("violet-tulip"),
        SecretBytes(b"violet-tulip"),
        "  violet-tulip\n",
    ],
    ids=["str", "bytes", "SecretStr", "SecretBytes", "with blanks"],
)
def test_a_secret_can_have_any_supported_type(value: str | bytes | SecretStr | SecretBytes) -> None:
    """Secrets come from files, the environment and settings objects."""
    register_secret(value)

    assert mask("a violet-tulip b") == "a *** b"
    forget_secret("violet-tulip")
    assert mask("a violet-tulip b") == "a violet-tulip b"


@pytest.mark.parametrize("value", ["", "abcde", "     abcde   ", b"12345", SecretStr("")])
def test_a_short_secret_is_refused_with_the_reason(value: str | bytes | SecretStr) -> None:
    """A short value would be masked all over ordinary text; an empty one would mask nothing."""
    with pytest.raises(UserValueError, match=r"expected 6 to 32,768 bytes, got \d") as caught:
        register_secret(value)
    assert "abcde" not in str(caught.value)


def test_a_huge_secret_is_refused() -> None:
    """The time for masking is bounded, and it depends on the sizes of secrets."""
    with pytest.raises(UserValueError, match="got 32,769"):
        register_secret("x" * 32_769)


@pytest.mark.parametrize("value", [None, 123456789, ["violet-tulip"]])
def test_an_invalid_secret_is_refused(value: object) -> None:
    """`os.environ.get()` can return `None`; an early error is better than a leak."""
    with pytest.raises(UserTypeError, match=r"str, bytes or an object with get_secret_value"):
        register_secret(value)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def b64(text: str) -> str:
    """Encode text in base64."""
    return base64.b64encode(text.encode()).decode()


ENCODINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "percent": lambda text: quote(text, safe=""),
    "percent, slash kept": quote,
    "percent, plus": quote_plus,
    "percent, lowercase": lambda text: re.sub("%..", lambda code: code[0].lower(), quote(text)),
    "percent, every byte": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "base64": b64,
    "base64, URL-safe": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "base64, no padding": lambda text: b64(text).rstrip("="),
    "basic auth": lambda text: b64(f"user:{text}"),
    "hexadecimal": lambda text: text.encode().hex(),
    "JSON": json.dumps,
    "JSON, not ASCII": lambda text: json.dumps(text, ensure_ascii=False),
    "JSON in JSON": lambda text: json.dumps(json.dumps(text)),
    "Python": repr,
    "Python, ASCII": ascii,
    "bytes literal": lambda text: repr(text.encode()),
}


@pytest.mark.parametrize("name", ENCODINGS)
def test_a_registered_value_is_masked_in_every_usual_encoding(registered: str, name: str) -> None:
    """Headers, addresses and logs rarely contain a secret unencoded."""
    encoded = ENCODINGS[name](registered)

    masked = mask(f"before {encoded} after")

    assert masked.startswith("before ")
    assert masked.endswith(" after")
    assert MASK in masked
    assert not any(encoded[at : at + 8] in masked for at in range(len(encoded) - 7))


@given(
    st.lists(st.integers(33, 255), min_size=6, max_size=40, unique=True).map(bytes),
    st.binary(max_size=7),
    st.binary(max_size=7),
    st.booleans(),
)
def test_a_secret_inside_base64_is_masked_at_each_alignment(
    secret: bytes, before: bytes, after: bytes, safe: bool
) -> None:
    """The encoded form of a secret depends on its offset in the data."""
    encode = base64.urlsafe_b64encode if safe else base64.b64encode
    encoded = encode(before + secret + after).decode()
    register_secret(secret)
    try:
        masked = mask(encoded)
    finally:
        forget_secret(secret)

    left, found, right = masked.partition(MASK)
    assert found
    assert encoded.startswith(left)
    assert len(left) <= -(-8 * len(before) // 6)  # only the text before the secret
    assert len(right.rstrip("=")) <= -(-8 * len(after) // 6)


def test_overlapping_secrets_are_masked_completely() -> None:
    """Masking one after the other would leave the end of the second."""
    register_secret("abcdefgh")
    register_secret("efghijkl")
    register_secret("abcdefghijklmnop")

    assert mask("x abcdefghijkl y") == "x *** y"
    assert mask("x abcdefghijklmnop y") == "x *** y"
    assert mask("abcdefghabcdefgh") == "******"


PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAx\n1yQ==\n-----END RSA PRIVATE KEY-----"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4fwpM"

SHAPES = {
    "OpenAI": ("key sk-proj-aB3dEf6hIj9kLm2nOp end", "key *** end"),
    "Anthropic": ("sk-ant-api03-aB3dEf6hIj9kLm2nOp", "***"),
    "Stripe": ("sk_live_aB3dEf6hIj9kLm2n", "***"),
    "GitHub": ("ghp_aB3dEf6hIj9kLm2nOp5qRs8tUv1wXy4zAb7c", "***"),
    "GitHub, fine-grained": ("github_pat_11AB3dEf6_hIj9kLm2nOp5qRs8tUv", "***"),
    "GitLab": ("glpat-aB3dEf6hIj9kLm2nOp5q", "***"),
    "AWS key id": ("AKIAIOSFODNN7EXAMPLE", "***"),
    "AWS key": (
        "aws_secret_access_key = /JalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
        "aws_secret_access_key = ***",
    ),
    "Slack": ("xoxb-123456789012-abcdefghijkl", "***"),
    "Google": ("AIzaSyA1234567890abcdefghijklmnopqrstuv", "***"),
    "Hugging Face": ("hf_aB3dEf6hIj9kLm2nOp5qRs8tUv1wXy4zAb", "***"),
    "JSON Web Token": (f"cookie-less {JWT}!", "cookie-less ***!"),
    "bearer": ("Authorization: Bearer abc123.def", "Authorization: Bearer ***"),
    "bearer alone": ("sent 'Bearer 0123456789abcdef'", "sent 'Bearer ***'"),
    "basic": ("authorization: Basic dXNlcjpwdw==", "authorization: Basic ***"),
    "header": ("X-Api-Key: tulip", "X-Api-Key: ***"),
    "cookie": ("Cookie: a=b; c=d\nHost: x", "Cookie: ***\nHost: x"),
    "set cookie": ("{'set-cookie': 'sid=12; Secure'}", "{'set-cookie': '***'}"),
    "private key": (f"a {PEM} b", "a *** b"),
    "private key, cut": ("a " + PEM[:60], "a ***"),
    "private key in JSON": (json.dumps({"k": PEM}), '{"k": "***"}'),
    "assignment": ("password=tulip next", "password=*** next"),
    "assignment, like a word": ("password=must-change", "password=***"),
    "assignment, spaced": ("passwd = tulip", "passwd = ***"),
    "colon": ("api_key: tulip", "api_key: ***"),
    "environment": ("DB_PASSWORD=tulip\nGITHUB_TOKEN=rose", "DB_PASSWORD=***\nGITHUB_TOKEN=***"),
    "camel case": (
        '{"clientSecret":"tulip","apiKey":"rose"}',
        '{"clientSecret":"***","apiKey":"***"}',
    ),
    "JSON": ('{"password": "tu \\"lip", "a": 1}', '{"password": "***", "a": 1}'),
    "JSON in JSON": (r'"{\"password\": \"tulip\"}"', r'"{\"password\": \"***\"}"'),
    "Python": ("{'access_token': 'tulip'}", "{'access_token': '***'}"),
    "keyword": ("connect(password='tulip', port=1)", "connect(password='***', port=1)"),
    "connection string": ("Server=a;Uid=b;Pwd=tulip;X=1", "Server=a;Uid=b;Pwd=***;X=1"),
    "option": ("mysql --password tulip -h x", "mysql --password *** -h x"),
    "address": ("postgres://user:tu:l@ip@host/db", "postgres://user:***@host/db"),
    "address, no user": ("redis://:tulip@host", "redis://:***@host"),
    "address, token": ("https://aB3dEf6hIj9kLm2nOp@host/x", "https://***@host/x"),
    "query": ("https://h/?api_key=tulip&a=1", "https://h/?api_key=***&a=1"),
    "signed address": (
        "https://h/x?X-Amz-Signature=0a1b&y=2",
        "https://h/x?X-Amz-Signature=***&y=2",
    ),
    "percent": ("next=https%3A%2F%2Fu%3Atulip%40h", "next=https%3A%2F%2Fu%3A***%40h"),
    "percent, assignment": ("q=password%3Dtulip%26a", "q=password%3D***%26a"),
}


@pytest.mark.parametrize("name", SHAPES)
def test_values_that_look_like_secrets_are_masked(name: str) -> None:
    """An error of a server can contain a key that was never registered."""
    text, expected = SHAPES[name]

    masked = mask(text)

    assert masked == expected
    assert mask(masked) == masked


@pytest.mark.parametrize("before", ["", "a", "ab", "/v1/x", "1234567"])
@pytest.mark.parametrize("secret", ["sk-aB3dEf6hIj9kLm2nOp", "password=tulip", JWT, PEM])
def test_values_that_look_like_secrets_are_masked_in_base64(secret: str, before: str) -> None:
    """One call of `b64decode` would restore the key."""
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        encoded = encode(f"{before}the {secret} is it".encode()).decode()

        assert mask(f"data: {encoded} end") == "data: *** end"
        assert mask(f"data:{before}{encoded}") != f"data:{before}{encoded}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The quick brown fox; 100% of 3 dogs",
        "password: expected a string, got 5",
        "password: missing, expected a string (required)",
        "cookie: null, password: any, secret=None",
        "token: unknown, did you mean 'tokens'?",
        "max_tokens=100, token_count: 5, secretary: Ann",
        "next_page_token: abc, pageToken=def, continuation-token: g",
        "Unexpected token: }",
        "Bearer authentication required",
        "PWD=/home/ann",
        "https://host:8080/a@b?key=value",
        "git@github.com:a/b.git, ann@example.org",
        "def connect(user: str, password: str) -> None: ...",
        '{"properties": {"password": {"type": "string"}}}',
        "the file starts with -----BEGIN PRIVATE KEY----- and ends soon",
        "ask-me-anything-about-risk-management-software",
        "/usr/lib/python3.11/site-packages/agents_tools/content/outputs.py",
        "commit 25cb90c84e5c9832a1b2c3d4e5f60718293a4b5c",
        base64.b64encode(b"The quick brown fox jumps over the lazy dog").decode(),
    ],
)
def test_ordinary_text_is_unchanged(text: str) -> None:
    """A model that reads asterisks instead of facts cannot correct itself."""
    assert mask(text) == text


@given(
    st.lists(
        st.sampled_from([text for text, _ in SHAPES.values()] + [MASK, " ", "%", "%2", "=", '"'])
        | st.text(max_size=5),
        max_size=6,
    ).map("\n".join)
)
@example("secret_key = /JalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY\nq=password%3Dtulip%26a")
def test_masking_is_idempotent(text: str) -> None:
    """Messages are masked in several places, and masked text must stay readable."""
    masked = mask(text)

    assert mask(masked) == masked


EVIL = [
    *("sk-", "ghp_", "eyJ", "eyJaaaaa.", "eyJaaaaa.bbbbb.", "AKIA", "xoxb-", "hf_"),
    *("Bearer ", "bearer a.", "authorization:bearer ", "cookie", "cookie:", "://", "://a:", "://a"),
    *(
        "password",
        "password=",
        'password="',
        'password="\\',
        "key \t",
        "--password ",
        "next_token=",
    ),
    *("-----BEGIN PRIVATE KEY-----", "-----BEGIN ", "-----BEGIN PRIVATE KEY----------END "),
    *("%41", "%", "%ff", "c2st", "c2stc2stc2stc2stc2stc2st ", "a", "-", "?sig=", "secret \\"),
    *("\\", "\\u0041", "\\\\n"),
    *("abcabcabd", "abc", '{"a": 12, "key": "v"}'),
]


# --- secrets of several lines


def private_key() -> str:
    """Return the PEM form of random bytes."""
    body = base64.b64encode(random.Random(7).randbytes(600)).decode()  # noqa: S311 - made up
    lines = [body[start : start + 64] for start in range(0, len(body), 64)]
    return "\n".join(["-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----"])


@pytest.mark.parametrize(
    "show",
    [
        lambda lines: "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, 1)),
        lambda lines: "\n".join(f"key.pem:{number}:{line}" for number, line in enumerate(lines, 1)),
        lambda lines: "\n".join(f"+{line}" for line in lines),
        lambda lines: "\n".join(lines[3:]),
        "".join,
        lambda lines: json.dumps([{"line": line} for line in lines]),
        lambda lines: lines[5].encode().hex(),
    ],
    ids=["view", "grep", "diff", "tail", "joined", "JSON", "hexadecimal"],
)
def test_the_lines_of_a_secret_are_masked_without_the_others(
    show: Callable[[list[str]], str],
) -> None:
    """Tools show parts of files, with numbers and marks between the lines."""
    key = private_key()
    register_secret(key)
    lines = key.splitlines()
    masked = mask_registered(show(lines))
    assert not any(line in masked for line in lines[1:-1])
    assert lines[5].encode().hex() not in masked
    assert MASK in masked


ACCOUNT = """{
  "type": "service_account",
  "project_id": "my-project-123456",
  "private_key_id": "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567",
  "private_key": "-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADANBgkqhkiG9w0\\n-----END PRIVATE KEY-----",
  "client_email": "robot@my-project-123456.iam.example.com",
  "auth_uri": "https://accounts.example.com/o/oauth2/auth",
  "universe_domain": "example.com"
}"""


def test_only_the_random_values_of_a_file_of_keys_are_secrets() -> None:
    """Headers, addresses and names occur in ordinary text, which must stay readable."""
    register_secret(ACCOUNT)
    random_values = ("0a1b2c3d4e5f60718293a4b5c6d7e8f901234567", "MIIEvQIBADANBgkqhkiG9w0")
    for value in random_values:
        assert mask_registered(f"a {value} b") == "a *** b"
    rest = ACCOUNT.replace(random_values[0], "").replace(random_values[1], "")
    for line in rest.splitlines():
        assert mask_registered(line) == line


@pytest.mark.scaled
@pytest.mark.parametrize("piece", EVIL)
def test_masking_a_hostile_text_takes_linear_time(piece: str) -> None:
    """The output of a tool must not block the process that masks it."""
    register_secret("abcabcabcabcabcabcabcabd" * 8)
    text = (piece * (LARGE // len(piece) + 1))[:LARGE]
    with at_most(LARGE // 1_000):  # a quadratic search would take minutes
        mask(text)


def test_a_large_result_without_a_secret_is_not_decoded() -> None:
    """Masking runs on the event loop; decoding a result takes a hundred times as long."""
    register_secret("violet-tulip-77")
    text = json.dumps([{"line": 'one\ntwo "three" é', "url": "/a%20b"}] * (LARGE // 50))
    with at_most(LARGE // 60_000):
        mask_registered(text)


def test_masking_a_short_text_is_fast() -> None:
    """Each error, event and log line is masked."""
    text = "File '/tmp/report.txt' could not be opened: permission denied on line 12 of the job"
    mask(text)  # compiles the patterns
    with at_most(50):
        for _ in range(1_000):
            mask(text)


@pytest.mark.requirement("S20")
def test_json_is_masked_in_keys_and_values_at_any_depth() -> None:
    """Events and results are masked before they are written."""
    register_secret("violet-tulip")
    register_secret("12345678")
    value = {
        "plain": [1, 2.5, True, None, "text", b"bytes"],
        "list": ["a violet-tulip", ("violet-tulip", {"x": "violet-tulip"})],
        "violet-tulip": 1,
        "another violet-tulip": 2,
        "number": 12345678,
        "bytes": b"\xff violet-tulip",
        "password": "rose",
        "apiKey": 4711,
        "token": ["rose", {"type": "string"}],
        "page_token": "rose",
        "empty secret": "",
        "no secret": None,
        "view": MappingProxyType({"a": "violet-tulip"}),
        3: "violet-tulip",
    }

    assert mask_json(value) == {
        "plain": [1, 2.5, True, None, "text", b"bytes"],
        "list": ["a ***", ("***", {"x": "***"})],
        "***": 1,
        "another ***": 2,
        "number": "***",
        "bytes": b"\xff ***",
        "password": "***",
        "apiKey": "***",
        "token": ["***", {"type": "string"}],
        "page_token": "rose",
        "empty secret": "",
        "no secret": None,
        "view": {"a": "***"},
        3: "***",
    }


def test_keys_with_the_same_mask_stay_distinct() -> None:
    """Masking can hide a key but must not lose its value."""
    register_secret("violet-tulip")
    register_secret("purple-daisy")

    masked = mask_json({"violet-tulip": 1, "purple-daisy": 2, "***": 3})

    assert masked == {"***": 1, "*** (2)": 2, "*** (3)": 3}


def test_masking_handles_any_shape_and_values_that_are_not_json() -> None:
    """Reports are seldom clean JSON, and reporting must not fail."""
    cycle: list[object] = []
    cycle.append(cycle)
    now = dt.datetime.now(tz=dt.UTC)

    assert MASK in json.dumps(mask_json(cycle))
    assert mask_json([now, 10**5000]) == [now, 10**5000]


def test_masking_is_thread_safe_during_registration() -> None:
    """Any thread can register secrets at any time."""
    register_secret("violet-tulip")
    failures: list[BaseException | str] = []
    barrier = threading.Barrier(5)

    def churn(name: str) -> None:
        barrier.wait(5)
        for index in range(100):
            register_secret(f"{name}-secret-{index}")
            if mask(f"{name}-secret-{index}") != MASK:
                failures.append(name)
            forget_secret(f"{name}-secret-{index}")

    def watch() -> None:
        barrier.wait(5)
        failures.extend("missed" for _ in range(500) if mask("violet-tulip") != MASK)

    threads = [threading.Thread(target=churn, args=[f"thread{n}"]) for n in range(4)]
    threads.append(threading.Thread(target=watch))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)

    assert failures == []
    assert mask("thread0-secret-1 violet-tulip") == "thread0-secret-1 ***"


def fail(canaries: list[str]) -> None:
    """Raise an error with secrets in its text, its cause, its notes and the local variables."""
    cause = KeyError(canaries[0])
    cause.add_note(f"tried {canaries[1]}")
    raise RuntimeError(", ".join(canaries)) from cause


def plant(canaries: list[str]) -> str:
    """Return the output of a broken program with secrets: all sinks as one text."""
    places = {
        "env": "\n".join(f"VALUE_{n}={canary}" for n, canary in enumerate(canaries)),
        "args": json.dumps([{"query": canary, "nested": [canary]} for canary in canaries]),
        "ascii": json.dumps(canaries, ensure_ascii=False),
        "headers": "\n".join(
            f"Authorization: Basic {base64.b64encode(f'user{n}:{canary}'.encode()).decode()}"
            for n, canary in enumerate(canaries)
        ),
        "blobs": "\n".join(
            base64.urlsafe_b64encode(f"{'x' * n}{canary} tail".encode()).decode()
            for n, canary in enumerate(canaries)
        ),
        "addresses": "\n".join(
            f"https://host/{quote(canary, safe='')}?q={quote_plus(canary)}&r={quote(canary)}"
            for canary in canaries
        ),
        "stderr": "".join(f"fatal: login with {canary!r} failed\r\n" for canary in canaries),
        "bytes": repr([canary.encode() for canary in canaries]),
    }
    try:
        fail(canaries)
    except RuntimeError as error:
        captured = traceback.TracebackException.from_exception(error, capture_locals=True)
        places["traceback"] = "".join(captured.format())
    return "\n".join(places.values())


@pytest.mark.requirement("S20")
def test_none_of_forty_canaries_leaks() -> None:
    """They are planted in every sink and encoding, and none may be found in the output."""
    source = random.Random(20)  # noqa: S311 - made-up secrets
    alphabet = string.ascii_letters + string.digits + " +/=&?%\"'\\éß-_"
    canaries = [
        "q" + "".join(source.choices(alphabet, k=source.randrange(10, 40))) + "z" for _ in range(40)
    ]
    text = plant(canaries)
    for canary in canaries:
        assert canary in text
        register_secret(canary)

    masked = mask(text)

    for canary in canaries:
        for encode in ENCODINGS.values():
            core = encode(canary).strip("\"'=b")[1:-1]
            assert core not in masked
        assert canary[1:9] not in masked
    for run in masked.split():
        data = run.replace("-", "+").replace("_", "/").rpartition(MASK)[0]
        for skip in range(4):
            part = data[skip:][: (len(data) - skip) // 4 * 4]
            try:
                decoded = binascii.a2b_base64(part)
            except binascii.Error:
                continue
            assert not any(canary.encode()[:8] in decoded for canary in canaries)
