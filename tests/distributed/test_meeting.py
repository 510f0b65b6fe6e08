"""How ranks find each other before the run: who is missing is named, and strangers are sent away."""

import socket
from multiprocessing.connection import Connection

import pytest

from onion.cli.processes import _free_ports
from onion.distributed import meeting
from onion.errors import RankError


@pytest.fixture
def port(monkeypatch):
    """What a launcher tells one of three processes; return the port of the first."""
    ports = _free_ports(3)
    monkeypatch.setenv("PADDLE_TRAINER_ENDPOINTS", ",".join(f"127.0.0.1:{each}" for each in ports))
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", "3")
    monkeypatch.setenv("PADDLE_TRAINER_ID", "0")
    return ports[0]


@pytest.fixture
def as_rank(monkeypatch):
    return lambda rank: monkeypatch.setenv("PADDLE_TRAINER_ID", str(rank))


def test_the_ranks_that_do_not_come_are_named(port):
    with pytest.raises(RankError, match=rf"rank 1, 2 did not come within 0.05 seconds of the start.*127.0.0.1:{port}"):
        meeting.meet(0.05)


def test_a_first_rank_that_does_not_come_is_named(port, as_rank):
    as_rank(1)
    with pytest.raises(RankError, match=rf"rank 0 was not reached at 127.0.0.1:{port} within 0.05 seconds"):
        meeting.meet(0.05)


def test_an_address_in_use_is_told(port):
    told = rf"rank 0 cannot listen at 127.0.0.1:{port}.*Start the training again"
    with socket.create_server(("127.0.0.1", port)), pytest.raises(RankError, match=told):
        meeting.meet(60)


def test_a_stranger_is_no_rank(port, monkeypatch):
    """Those that wait at the door are: a stranger, one who says nothing and leaves, a rank, its double, another."""
    words = [b"hello", None, meeting._words(2), meeting._words(2), meeting._words(1)]
    make, ours = socket.create_server, []

    def with_guests(address, **settings):
        server = make(address, **settings)
        for each in words:
            guest = Connection(socket.create_connection(address).detach())
            ours.append(guest)
            if each is None:
                guest.close()
            else:
                guest.send_bytes(each)
        return server

    monkeypatch.setattr(socket, "create_server", with_guests)
    met = meeting.meet(60)
    assert list(met) == [1, 2]
    for rank, connection in met.items():
        connection.send_bytes(b"welcome")
        assert ours[{1: 4, 2: 2}[rank]].recv_bytes() == b"welcome"
    for each in (*met.values(), *ours):
        each.close()
