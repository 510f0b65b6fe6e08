"""A redis-server for the tests of this folder, a plain client to look at it, and sources that are closed at the end."""

from contextlib import ExitStack, closing

import pytest

from onion.online.sources.redis_server import RedisServer
from tests.online.sources.redis_process import REDIS, RedisProcess


@pytest.fixture
def opened():
    """Return a function that returns what it is given, to be closed at the end."""
    with ExitStack() as sources:
        yield lambda source: sources.enter_context(closing(source))


@pytest.fixture(scope="session")
def shared_redis(tmp_path_factory):
    """A server for all tests that leave it running."""
    if REDIS is None:
        pytest.skip("no redis-server on PATH (Debian: apt-get install redis-server)")
    pytest.importorskip("redis", reason="the package redis is not installed (extra redis)")
    with RedisProcess(tmp_path_factory.mktemp("redis")) as process:
        yield process


@pytest.fixture
def url(shared_redis):
    """The URL of an empty server."""
    server = RedisServer(shared_redis.url)
    server.call("FLUSHALL")
    server.drop()
    return shared_redis.url


@pytest.fixture
def ask(url):
    """Send a command."""
    server = RedisServer(url)
    yield server.call
    server.drop()


@pytest.fixture
def own_redis(tmp_path, shared_redis):
    """A server that the test may kill and start."""
    process = RedisProcess(tmp_path / "redis").start()
    yield process
    process.kill()
