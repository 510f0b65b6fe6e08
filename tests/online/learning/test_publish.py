"""Publish: predictions from snapshots during the training; BoundaryExecutor: work that a run does for other threads."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext

import numpy as np
import paddle
import pytest

from onion import (
    CompositionError,
    DataProvider,
    GradientMachine,
    MovingAverage,
    Observer,
    ParameterUpdater,
    Runner,
    Saver,
)
from onion.checkpointing import rng
from onion.http.refused import Refused
from onion.online.learning.publish import BoundaryExecutor, Publish
from onion.testing import Batches, PlannedError, assert_resumes_exactly, toy_examples, toy_network
from tests.abilities import needs_draws_again
from tests.onions.learning_online import LEARNING_ONLINE
from tests.online.toys import learning, submissions
from tests.patience import PATIENCE
from tests.toys import Dropped, bits


class Counter(paddle.nn.Layer):
    """A network of two parameters far apart, which count its steps; its outputs are [both, for each input]."""

    def __init__(self, size=1):
        super().__init__()
        self.first = self.create_parameter([size], default_initializer=paddle.nn.initializer.Constant(0.0))
        self.between = paddle.nn.Linear(64, 64)
        self.last = self.create_parameter([size], default_initializer=paddle.nn.initializer.Constant(0.0))

    def forward(self, batch):
        return batch["x"] * paddle.stack([self.first[0], self.last[-1]])

    def loss(self, outputs, batch):
        return -(self.first.sum() + self.last.sum())


def counting(network):
    optimizer = paddle.optimizer.SGD(1.0, parameters=[network.first, network.last])
    return [ParameterUpdater(optimizer), GradientMachine(network)]


def prepare(inputs):
    return {"x": np.array(inputs, "float32").reshape(-1, 1)}


def rows_of(inputs):
    return {"x": np.array(inputs, "float32")}


def finish(outputs):
    return outputs.tolist()


@contextmanager
def asking(publish, inputs, threads):
    """Predict in other threads, again and again; yield the answers, and an event that is set with each."""
    over, come, answers = threading.Event(), threading.Event(), []

    def ask():
        while not over.is_set():
            try:
                answers.append(publish.predict(inputs))
            except Refused:
                continue
            come.set()

    with ThreadPoolExecutor(threads) as pool:
        asked = [pool.submit(ask) for _ in range(threads)]
        try:
            yield answers, come
        finally:
            over.set()
        for each in asked:
            each.result(PATIENCE)


def publishing(network, **options):
    return Publish(network, prepare, finish, **{"every": 1, **options})


def counter_run(*inner, count=5, every=1, network=None, outer=()):
    """Return a Publish of a counter, and a runner with ``inner`` items inside of it and ``outer`` ones outside."""
    network = network or Counter()
    publish = publishing(network, every=every)
    batches = Batches([{"x": np.ones([2, 1], "float32")}] * count)
    return publish, Runner(*outer, publish, *inner, batches, *counting(network))


def test_predictions_are_of_the_newest_snapshot_and_name_its_step():
    found = []

    def ask(state):
        try:
            found.append(publish.predict([1, 10]))
        except Refused as refused:
            found.append(refused.status)

    publish, runner = counter_run(every=2, outer=[Observer(on_batch_end=ask)])
    runner.run(passes=1)
    two, four = ({"predictions": [[n, n], [10 * n, 10 * n]], "step": n} for n in (2, 4))
    assert found == [503, two, two, four, four]
    assert publish.predict([1]) == {"predictions": [[5, 5]], "step": 5}, "the end of the run is published too"


def test_refused_predictions():
    publish, runner = counter_run(count=2, every=2)
    with pytest.raises(Refused, match="nothing is published yet") as caught:
        publish.predict([1])
    assert caught.value.status == 503
    runner.run(passes=1)
    with pytest.raises(Refused, match="the inputs are invalid: ValueError: could not convert") as caught:
        publish.predict(["a"])
    assert caught.value.status == 400
    asked = Observer(on_batch_begin=lambda state: publish.predict([1]))
    with pytest.raises(Refused, match="nothing is published yet"):  # in a second run, before its first period
        runner.insert_before(ParameterUpdater, asked).run(passes=1)


def test_the_average_is_what_is_published():
    network = toy_network()
    smooth = MovingAverage(network, 0.5)
    publish = Publish(smooth, rows_of, finish, every=1)
    Runner(publish, DataProvider(toy_examples(12), 4), smooth, *learning(network, 0.1)).run(passes=1)
    row = toy_examples(1)[0]["x"]
    wanted, own = (each({"x": paddle.to_tensor(row[None])}).tolist() for each in (smooth.average, network))
    assert publish.predict([row.tolist()])["predictions"] == wanted != own


@pytest.mark.filterwarnings("ignore:When training, we now always track")
def test_a_snapshot_has_buffers_and_is_in_evaluation_mode():
    paddle.seed(1)
    network = paddle.nn.Sequential(paddle.nn.Linear(8, 8), paddle.nn.BatchNorm1D(8), paddle.nn.Dropout(0.9))
    publish = Publish(network, lambda inputs: paddle.ones([2, 8]), finish, every=1)
    updater = ParameterUpdater(paddle.optimizer.SGD(0.1, parameters=network.parameters()))
    batches = Batches([np.random.default_rng(0).normal(size=[4, 8]).astype("float32")] * 3)
    machine = GradientMachine(network, lambda outputs, batch: outputs.mean())
    Runner(publish, batches, updater, machine).run(passes=1)
    network.eval()
    assert publish.predict([0, 0])["predictions"] == network(paddle.ones([2, 8])).tolist()


@pytest.mark.parametrize("threads", [1, 3])
def test_no_prediction_is_of_a_half_updated_network(threads):
    """Its first and its last parameter count the same steps."""

    def wait_for_another(state):
        publish.predict([1])  # draws nothing, so others need not wait for the run, which waits for them
        if state.step % 10 == 2:
            come.clear()
            assert come.wait(PATIENCE)

    look = Observer(on_batch_end=wait_for_another)
    publish, runner = counter_run(count=150, network=Counter(size=100_000), outer=[look])
    with asking(publish, [1], threads) as (answers, come):
        runner.run(passes=1)
    found = [(*answer["predictions"][0], answer["step"]) for answer in answers]
    assert all(first == last == step for first, last, step in found)
    assert len({step for _, _, step in found}) > 5


def trained(publish_it, folder):
    """Return the bits of a run with dropout, momentum and clipping, and the state of Paddle's generator."""
    paddle.seed(7)
    network = Dropped()
    smooth = MovingAverage(network, 0.9)
    clip = paddle.nn.ClipGradByGlobalNorm(0.5)
    optimizer = paddle.optimizer.AdamW(0.02, parameters=network.parameters(), grad_clip=clip)
    publish, inputs = Publish(smooth, rows_of, finish, every=3), [ROW] * 5

    def wait_for_one(state):
        if publish_it and state.step == 50:
            publish.predict(inputs)  # draws nothing, so others need not wait for the run, which waits for them
            come.wait(PATIENCE)

    data = DataProvider(toy_examples(64), 4, shuffle=True)
    look = Observer(on_batch_end=wait_for_one)
    runner = Runner(Saver(folder), look, publish, data, smooth, ParameterUpdater(optimizer), GradientMachine(network))
    with asking(publish, inputs, 3) if publish_it else nullcontext(([], None)) as (answers, come):
        state = runner.run(passes=6)
    assert bool(answers) == publish_it
    return bits(network), bits(smooth.average), float(state.loss), paddle.get_rng_state()[0].__getstate__()


def test_predictions_of_other_threads_change_no_bit_of_the_training(tmp_path):
    assert trained(True, tmp_path / "with") == trained(False, tmp_path / "without")


class Noisy(Dropped):
    """A network that draws random numbers of every kind, in evaluation mode too, for the inputs chosen by ``asks``."""

    asks = staticmethod(lambda batch: True)

    def forward(self, batch):
        outputs = super().forward(batch)
        if not self.training and self.asks(batch):
            outputs = outputs + paddle.rand([1]) + random.random() + np.random.random()
        return outputs


def noisily_trained(ask=lambda publish, state: None, network=Noisy, prepare=prepare, **options):
    """Return the bits of a run in which predictions draw random numbers, and the states of the generators at its end.

    ``ask`` is called within each batch; the last thing that a batch does is to draw a number of each kind.
    """
    paddle.seed(7)
    random.seed(7)
    np.random.seed(7)
    network = network()
    publish = Publish(network, prepare, finish, every=1, **options)
    drawn = []

    def look(state):
        ask(publish, state)
        drawn.append((random.random(), np.random.random(), paddle.rand([1]).item()))

    updater = ParameterUpdater(paddle.optimizer.AdamW(0.02, parameters=network.parameters()))
    data = DataProvider(toy_examples(32), 4, shuffle=True)
    Runner(Observer(on_batch_end=look), publish, data, updater, GradientMachine(network)).run(passes=2)
    return bits(network), drawn, rng.capture()


ROW = toy_examples(1)[0]["x"].tolist()


def rows_with_noise(inputs):
    return {"x": np.array(inputs, "float32") + np.random.random() + random.random()}


@needs_draws_again
@pytest.mark.parametrize(("network", "make"), [(Noisy, rows_of), (Dropped, rows_with_noise)])
def test_random_numbers_drawn_by_a_prediction_are_restored(network, make):
    def ask(publish, state):
        publish.predict([ROW])
        with pytest.raises(Refused):
            publish.predict("x")

    alone = noisily_trained(network=network, prepare=make)
    assert noisily_trained(ask, network, make) == alone


class Waiting:
    """Predictions of another thread, one a batch; the run continues once it waits for them."""

    def __init__(self, pool):
        self.pool, self.submitted, self.answers = pool, None, []

    def __call__(self, publish, state):
        self.submitted = self.submitted or submissions(publish._boundary)
        self.submitted.clear()
        self.answers.append(self.pool.submit(publish.predict, [ROW]))
        assert self.submitted.wait(PATIENCE)


@needs_draws_again
@pytest.mark.parametrize("options", [{}, {"draws": True}])
def test_other_threads_that_draw_to_predict_wait_for_the_end_of_the_batch(options):
    def make(inputs):
        threads.append(threading.get_ident())
        return rows_of(inputs)

    threads = []
    alone = noisily_trained(prepare=rows_of)
    with ThreadPoolExecutor(1) as pool:
        ask = Waiting(pool)
        assert noisily_trained(ask, prepare=make, **options) == alone
        steps = [answer.result(PATIENCE)["step"] for answer in ask.answers]
    assert steps == list(range(1, 17)), "each of the snapshot of the batch in which it came"
    assert set(threads) == {threading.get_ident()}


def test_other_threads_that_draw_nothing_do_not_wait():
    """The first one shows that they draw nothing; then the run itself may wait for the others."""
    steps = []

    def ask(publish, state):
        publish.predict([ROW])
        steps.append(pool.submit(publish.predict, [ROW]).result(PATIENCE)["step"])

    with ThreadPoolExecutor(1) as pool:
        noisily_trained(ask, Dropped, rows_of)
    assert steps == list(range(1, 17))


@needs_draws_again
def test_draws_for_some_inputs_only_are_detected(caplog):
    class Rarely(Noisy):
        asks = staticmethod(lambda batch: bool((batch["x"] > 100).any()))

    def ask(publish, state):
        publish.predict([ROW])
        if state.step == 5:
            pool.submit(publish.predict, [[101.0] * len(ROW)]).result(PATIENCE)
        told.append((state.step, publish._draws))

    told = []
    with ThreadPoolExecutor(1) as pool:
        noisily_trained(ask, Rarely, rows_of)
    assert told[4:6] == [(5, False), (6, True)]
    [error] = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert error.startswith("publish: a prediction has drawn random numbers, though the first of this run had not")


def test_a_slow_prediction_does_not_delay_the_training_and_the_next_step_tries_again():
    steps, answer = [], []
    held, may_go = threading.Event(), threading.Event()

    class Slow(Counter):
        def forward(self, batch):
            if batch["x"][0].item() == 7:
                held.set()
                assert may_go.wait(PATIENCE)
            return super().forward(batch)

    def look(state):
        if state.step == 4:
            publish.predict([1])  # draws nothing, so the others do not wait for the run
            answer.append(pool.submit(publish.predict, [7]))  # holds the copy of step 3, which is due again at step 9
            assert held.wait(PATIENCE)
        if state.step == 10:
            may_go.set()
            answer[0].result(PATIENCE)
        steps.append(publish._live.step if publish._live else None)

    publish, runner = counter_run(count=11, every=3, network=Slow(), outer=[Observer(on_batch_end=look)])
    with ThreadPoolExecutor(1) as pool:
        runner.run(passes=1)
    assert steps == [None, None, 3, 3, 3, 6, 6, 6, 6, 6, 11]
    assert answer[0].result() == {"predictions": [[21, 21]], "step": 3}


def test_a_resumed_run_publishes_the_loaded_weights(tmp_path):
    def run(steps, ask=lambda state: None):
        saver = Saver(tmp_path, every=1)
        counter_run(Observer(on_batch_begin=ask), count=9, every=100, outer=[saver])[1].run(steps=steps)

    run(3)
    seen = []
    run(4, lambda state: seen.append(state.runner[Publish].predict([1])))
    assert seen == [{"predictions": [[3, 3]], "step": 3}]


def test_a_run_that_fails_leaves_the_last_snapshot():
    def fail(state):
        if state.step == 3:
            raise PlannedError

    publish, runner = counter_run(Observer(on_batch_begin=fail), every=2)
    with pytest.raises(PlannedError):
        runner.run(passes=1)
    assert publish.predict([1]) == {"predictions": [[2, 2]], "step": 2}


@needs_draws_again
def test_a_resumed_run_is_bit_identical(tmp_path):
    kind = LEARNING_ONLINE["publish"]
    assert_resumes_exactly(kind.make, tmp_path, passes=kind.passes, cuts=[1, 4])


def test_a_run_may_continue_with_it_or_without(tmp_path):
    for steps, publishes in ((1, False), (2, True), (3, False)):
        _, runner = counter_run(count=9, outer=[Saver(tmp_path, every=1)])
        assert (runner if publishes else runner.without("publish")).run(steps=steps).step == steps


async def coroutine(inputs): ...


@pytest.mark.parametrize("functions", [(None, finish), (prepare, 3), (coroutine, finish)])
def test_only_plain_functions_are_accepted(functions):
    with pytest.raises(CompositionError, match="must be plain functions"):
        Publish(Counter(), *functions)


def test_a_place_inside_of_what_updates_the_weights_is_refused():
    network = Counter()
    updater, machine = counting(network)
    with pytest.raises(CompositionError, match="publish is inside parameter_updater, which updates the weights"):
        Runner(Batches(1), updater, publishing(network), machine)
    smooth = MovingAverage(network)
    with pytest.raises(CompositionError, match="publish is inside moving_average, which updates the weights"):
        Runner(Batches(1), smooth, publishing(smooth), updater, machine)


# -- BoundaryExecutor --------------------------------------------------------------------------------------------------


@pytest.fixture
def pool():
    with ThreadPoolExecutor(1) as made:
        yield made


here = threading.get_ident


def left(executor, pool, work):
    """Have another thread submit work."""
    return pool.submit(executor.submit, work).result(PATIENCE)


def test_without_a_run_work_is_done_at_once(pool):
    executor = BoundaryExecutor()
    assert executor.is_idle
    assert executor.call(here) == here()
    assert pool.submit(executor.call, here).result(PATIENCE) != here()


def test_a_run_does_the_work_in_its_own_thread(pool):
    executor = BoundaryExecutor()
    with executor.active():
        assert executor.is_idle
        assert not pool.submit(lambda: executor.is_idle).result(PATIENCE)
        first, second = left(executor, pool, here), left(executor, pool, lambda: 1 / 0)
        assert not first.done()
        executor.run_pending()
        assert first.result(0) == here()
        with pytest.raises(ZeroDivisionError):
            second.result(0)
        assert executor.call(here) == here()


def test_the_caller_gets_the_result(pool):
    executor = BoundaryExecutor()
    submitted = submissions(executor)
    with executor.active():
        waiting = pool.submit(executor.call, here)
        assert submitted.wait(PATIENCE)
        executor.run_pending()
        assert waiting.result(PATIENCE) == here()


@pytest.mark.parametrize("how", ["over", "failed", "ended"])
def test_pending_work_is_done_at_the_end_of_a_run(pool, how):
    executor = BoundaryExecutor()
    with pytest.raises(KeyError) if how == "failed" else nullcontext(), executor.active():
        future = left(executor, pool, here)
        if how == "failed":
            raise KeyError
        if how == "ended":
            executor.end()
            assert future.done()
            assert left(executor, pool, here) is None
    assert future.result(0) == here()
    assert left(executor, pool, here) is None


def test_an_inner_run_leaves_the_outer_one_active(pool):
    executor = BoundaryExecutor()
    with executor.active():
        with executor.active():
            pass
        assert left(executor, pool, here) is not None


def test_a_caller_that_submits_repeatedly_does_not_block_the_run(pool):
    executor, done = BoundaryExecutor(), []

    def again():
        done.append(None)
        left(executor, pool, again)

    with executor.active():
        left(executor, pool, again)
        executor.run_pending()
        assert len(done) == 1


def test_ctrl_c_is_for_the_run(pool):
    def interrupted():
        raise KeyboardInterrupt

    executor = BoundaryExecutor()
    with executor.active():
        future = left(executor, pool, interrupted)
        with pytest.raises(KeyboardInterrupt):
            executor.run_pending()
        assert isinstance(future.exception(0), KeyboardInterrupt)
