import pytest

from onion import Runner
from onion.engine.state import State
from onion.models.config import EncoderConfig
from onion.tasks.pretraining.throughput import FORWARD_AND_BACKWARD, Throughput, operations

CONFIG = EncoderConfig(
    vocab_size=10,
    hidden_size=4,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=8,
    max_position_embeddings=8,
)


def test_operations_are_those_of_every_matrix_product():
    # Of a row of 3 tokens, in each of 2 layers: four products by 4 x 4, two by 4 x 8, and 3 x 3 scores of 4 numbers
    # each, by which 4 numbers of 3 tokens are added up; of a masked word: one by 4 x 4, and one by 4 x 10.
    row = 2 * (3 * (4 * 4 * 4 + 2 * 4 * 8) + 3 * 3 * 4 + 3 * 3 * 4)
    assert operations(CONFIG, [3], 0) == FORWARD_AND_BACKWARD * 2 * row
    assert operations(CONFIG, [3, 3], 1) == FORWARD_AND_BACKWARD * 2 * (2 * row + 4 * 4 + 4 * 10)


@pytest.fixture
def clock(monkeypatch):
    """Let the clock stand still but for what a test adds."""
    now = [0.0]
    monkeypatch.setattr("onion.tasks.pretraining.throughput.perf_counter", lambda: now[0])
    return now


def test_rates_are_of_the_median_time_so_a_long_pause_does_not_count(clock):
    item = Throughput(CONFIG, peak_gflops=1.0)
    state = State()
    for seconds in (0.0, 0.5, 0.5, 60.0, 0.5):
        clock[0] += seconds
        state.batch = {"lengths": [3, 2], "masked_positions": [1]}
        for _ in item.on_batch(state):
            pass
    found = item.log_values()
    assert found["tokens_per_second"] == pytest.approx(10)
    assert found["gflops"] == found["share_of_peak"] == pytest.approx(operations(CONFIG, [3, 2], 1) / 0.5 / 1e9)


def test_nothing_is_told_of_a_single_batch_nor_of_the_time_between_passes(clock):
    item = Throughput(CONFIG)
    for _ in range(2):
        state = State()
        state.batch = {"lengths": [3]}
        item.on_pass(state)
        for _ in item.on_batch(state):
            pass
        clock[0] += 1
    assert item.log_values() == {}
    assert "throughput" in str(Runner(item))
