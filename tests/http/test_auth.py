"""Who may call."""

import pytest

from onion.errors import OnionError
from onion.http.auth import MAX_LENGTH, Access, find_token, is_loopback
from onion.http.refused import Refused

GOOD = "sixteen-letters!"


def private(file, content):
    file.write_text(content)
    file.chmod(0o600)
    return file


# -- the token ---------------------------------------------------------------------------------------------------------


def test_an_argument_precedes_the_environment(monkeypatch, tmp_path):
    assert find_token() is None
    monkeypatch.setenv("ONION_TOKEN", GOOD + "-env\n")
    assert find_token() == GOOD + "-env"
    assert find_token(GOOD) == GOOD
    assert find_token(file=private(tmp_path / "token", f"{GOOD}-file\n")) == GOOD + "-file"


def test_both_a_token_and_a_file_are_refused(tmp_path):
    with pytest.raises(OnionError, match="give one of them"):
        find_token(GOOD, tmp_path / "token")


@pytest.mark.parametrize("token", ["", GOOD[:-1], GOOD + " x", GOOD + "\x7f", GOOD + "é", "x" * (MAX_LENGTH + 1)])
def test_an_invalid_token_is_refused_and_not_shown(token, monkeypatch, tmp_path):
    monkeypatch.setenv("ONION_TOKEN", token)
    for given in ({}, {"token": token}, {"file": private(tmp_path / "t", token)}):
        with pytest.raises(OnionError) as error:
            find_token(**given)
        assert "secrets.token_urlsafe" in str(error.value) or "visible ASCII" in str(error.value)
        assert len(token) < 5 or token not in str(error.value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610])
def test_a_file_that_is_accessible_to_others_is_refused(mode, tmp_path):
    file = private(tmp_path / "token", GOOD)
    file.chmod(mode)
    with pytest.raises(OnionError, match="chmod 600"):
        find_token(file=file)


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(OnionError, match="cannot read the token: No such file"):
        find_token(file=tmp_path / "token")


def test_the_token_is_not_in_the_representation():
    assert GOOD not in repr(Access(GOOD))


# -- access ------------------------------------------------------------------------------------------------------------


def status(access, path="/status", method="GET", **headers):
    """Return the status of the refusal, or 200."""
    given = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    try:
        access.check(method, path, given)
    except Refused as refused:
        return refused.status
    return 200


HERE = "127.0.0.1:8765"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        *((each, 200) for each in (f"Bearer {GOOD}", f"bearer {GOOD}", f"BEARER  {GOOD} ")),
        *((each, 401) for each in ("", GOOD, f"Basic {GOOD}", "Bearer", "Bearer ", f"Bearer {GOOD}x")),
        *((each, 401) for each in (f"Bearer {GOOD[:-1]}", "Bearer é")),
    ],
)
def test_tokens(given, expected):
    assert status(Access(GOOD), host=HERE, authorization=given) == expected


@pytest.mark.parametrize(
    ("token", "headers"),
    [
        (GOOD, [(b"authorization", f"Bearer {GOOD}".encode())] * 2),
        (None, [(b"host", b"localhost"), (b"host", b"evil.example")]),
    ],
)
def test_repeated_headers_are_refused(token, headers):
    with pytest.raises(Refused):
        Access(token).check("GET", "/status", headers)


@pytest.mark.parametrize(
    ("path", "expected"), [("/", 200), ("/static/page.js", 200), ("/staticx", 401), ("/status", 401), ("", 401)]
)
def test_only_the_page_needs_no_token(path, expected):
    assert status(Access(GOOD), path, host=HERE) == expected


@pytest.mark.parametrize("path", ["/", "/docs", "/static/page.js"])
def test_only_reading_the_page_needs_no_token(path):
    assert status(Access(GOOD), path, "HEAD", host=HERE) == 200
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        assert status(Access(GOOD), path, method, host=HERE) == 401
        assert status(Access(None), path, method, host=HERE, sec_fetch_site="cross-site") == 403


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "127.9.9.9:8765", "[::1]:8765", "[::1]"])
def test_without_a_token_loopback_hosts_are_accepted(host):
    assert status(Access(None), host=host) == 200


@pytest.mark.parametrize(
    "host",
    [
        *["", "evil.example", "evil.example:8765", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1"],
        *["[::1", "evil@127.0.0.1.evil.example", "[::ffff:1.2.3.4]", "0.0.0.0"],
    ],
)
@pytest.mark.parametrize("path", ["/status", "/"])
def test_without_a_token_no_other_host_is_accepted(host, path):
    assert status(Access(None), path, host=host) == 403
    assert status(Access(None), path) == 403


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "", "http://127.0.0.1", "http://127.0.0.1:1", f"ftp://{HERE}", HERE]
)
@pytest.mark.parametrize("token", [None, GOOD])
def test_another_site_is_refused_even_with_the_right_token(origin, token):
    rule, authorization = Access(token), f"Bearer {token}"
    assert status(rule, host=HERE, authorization=authorization, origin=origin) == 403
    assert status(rule, host=HERE, authorization=authorization, origin=f"http://{HERE}") == 200


def test_a_proxy_may_use_tls_towards_the_browser():
    rule = Access(GOOD)
    assert status(rule, host="runs.example", authorization=f"Bearer {GOOD}", origin="https://Runs.example") == 200


def test_a_link_from_another_site_leads_to_the_page_only():
    rule = Access(None)
    assert status(rule, "/", host=HERE, sec_fetch_site="cross-site") == 200
    assert status(rule, "/events", host=HERE, sec_fetch_site="cross-site") == 403
    assert status(rule, "/events", host=HERE, sec_fetch_site="same-origin") == 200


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        *[("localhost", True), ("127.0.0.1", True), ("::1", True)],
        *[("0.0.0.0", False), ("::", False), ("", False), ("10.0.0.1", False), ("example.org", False)],
    ],
)
def test_loopback(host, expected):
    assert is_loopback(host) is expected
