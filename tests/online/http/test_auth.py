"""Who may call."""

import pytest

from onion.errors import OnionError
from onion.online.control.run_api import Refused
from onion.online.http.auth import MAX_LENGTH, Access, find_token, is_loopback

GOOD = "sixteen-letters!"


@pytest.fixture(autouse=True)
def _no_token_around(monkeypatch):
    monkeypatch.delenv("ONION_TOKEN", raising=False)


def private(file, content):
    file.write_text(content)
    file.chmod(0o600)
    return file


# -- where the token comes from -------------------------------------------------------------------------------


def test_no_token():
    assert find_token() is None


def test_a_token_that_is_given_comes_before_that_of_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("ONION_TOKEN", GOOD + "-env\n")
    assert find_token() == GOOD + "-env"
    assert find_token(GOOD) == GOOD
    assert find_token(file=private(tmp_path / "token", f"{GOOD}-file\n")) == GOOD + "-file"


def test_token_and_file_are_too_much(tmp_path):
    with pytest.raises(OnionError, match="give one of them"):
        find_token(GOOD, tmp_path / "token")


@pytest.mark.parametrize("token", ["", GOOD[:-1], GOOD + " x", GOOD + "\x7f", GOOD + "é", "x" * (MAX_LENGTH + 1)])
def test_a_token_that_does_not_do_is_refused_and_not_told(token, monkeypatch, tmp_path):
    monkeypatch.setenv("ONION_TOKEN", token)
    for given in ({}, {"token": token}, {"file": private(tmp_path / "t", token)}):
        with pytest.raises(OnionError) as error:
            find_token(**given)
        assert "secrets.token_urlsafe" in str(error.value) or "visible ASCII" in str(error.value)
        assert len(token) < 5 or token not in str(error.value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610])
def test_a_file_that_others_can_use_is_refused(mode, tmp_path):
    file = private(tmp_path / "token", GOOD)
    file.chmod(mode)
    with pytest.raises(OnionError, match="chmod 600"):
        find_token(file=file)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(OnionError, match="cannot be read: No such file"):
        find_token(file=tmp_path / "token")


def test_the_token_is_in_no_picture_of_the_rule():
    assert GOOD not in repr(Access(GOOD))


# -- the rule -----------------------------------------------------------------------------------------------


def status(access, path="/status", **headers):
    """Return the status of the refusal, or 200."""
    given = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    try:
        access.check(path, given)
    except Refused as refused:
        return refused.status
    return 200


HERE = "127.0.0.1:8765"


@pytest.mark.parametrize("given", [f"Bearer {GOOD}", f"bearer {GOOD}", f"BEARER  {GOOD} "])
def test_the_right_token(given):
    assert status(Access(GOOD), host=HERE, authorization=given) == 200


@pytest.mark.parametrize(
    "given", ["", GOOD, f"Basic {GOOD}", "Bearer", "Bearer ", f"Bearer {GOOD}x", f"Bearer {GOOD[:-1]}", "Bearer é"]
)
def test_wrong_tokens(given):
    assert status(Access(GOOD), host=HERE, authorization=given) == 401


def test_two_tokens_are_none():
    header = (b"authorization", f"Bearer {GOOD}".encode())
    with pytest.raises(Refused):
        Access(GOOD).check("/status", [header, header])


@pytest.mark.parametrize(
    ("path", "expected"), [("/", 200), ("/static/page.js", 200), ("/staticx", 401), ("/status", 401), ("", 401)]
)
def test_only_the_page_needs_no_token(path, expected):
    assert status(Access(GOOD), path, host=HERE) == expected


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "127.9.9.9:8765", "[::1]:8765", "[::1]"])
def test_without_a_token_this_machine_may_call(host):
    assert status(Access(None), host=host) == 200


@pytest.mark.parametrize(
    "host",
    [
        *["", "evil.example", "evil.example:8765", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1"],
        *["[::1", "evil@127.0.0.1.evil.example", "[::ffff:1.2.3.4]", "0.0.0.0"],
    ],
)
@pytest.mark.parametrize("path", ["/status", "/"])
def test_without_a_token_no_other_name_leads_here(host, path):
    assert status(Access(None), path, host=host) == 403
    assert status(Access(None), path) == 403


def test_two_names_are_none():
    with pytest.raises(Refused):
        Access(None).check("/status", [(b"host", b"localhost"), (b"host", b"evil.example")])


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "", "http://127.0.0.1", "http://127.0.0.1:1", f"ftp://{HERE}", HERE]
)
@pytest.mark.parametrize("token", [None, GOOD])
def test_another_site_is_refused_with_the_right_token_too(origin, token):
    rule, authorization = Access(token), f"Bearer {token}"
    assert status(rule, host=HERE, authorization=authorization, origin=origin) == 403
    assert status(rule, host=HERE, authorization=authorization, origin=f"http://{HERE}") == 200


def test_a_proxy_may_speak_tls_with_the_browser():
    rule = Access(GOOD)
    assert status(rule, host="runs.example", authorization=f"Bearer {GOOD}", origin="https://Runs.example") == 200


def test_a_link_from_another_site_leads_to_the_page_but_not_further():
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
