"""Pretraining from settings to an encoder that is fine-tuned."""

import json
import shutil
import signal
import subprocess
import sys

import attrs
import numpy as np
import pytest

from onion import Accumulate, DataProvider, ParameterUpdater, RunnerItem, Saver, TaskSampler
from onion.cli import main
from onion.errors import CheckpointError, DataError, WeightsError
from onion.models.auto import load_encoder, new_encoder
from onion.models.pretraining_heads import EncoderForPretraining
from onion.models.tokenizer import Tokenizer
from onion.tasks.pretraining.corpus.build import Build
from onion.tasks.pretraining.corpus.opening import open_corpus
from onion.tasks.pretraining.corpus.segmentation.tokenizer_words import TokenizerWords
from onion.tasks.pretraining.model import save_encoder
from onion.tasks.pretraining.pretrain import PretrainingJob, made, pretrain, train
from onion.tasks.pretraining.run_folder import PretrainingFolder
from onion.tasks.pretraining.throughput import Throughput
from onion.tasks.pretraining.token_frequencies import log_frequencies
from onion.testing import assert_resumes_exactly
from tests.paths import ROOT
from tests.patience import PATIENCE
from tests.tasks.helpers import films, snapshot, write_tsv
from tests.tasks.pretraining.corpus.foreign.files import WRITERS

TASKS = ("knowledge-masking", "sentence-order")


def rows(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def parameters(folder):
    return {name: each.numpy() for name, each in load_encoder(folder / "encoder").named_parameters()}


def assert_same(one, other):
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[name], other[name]) for name in one)


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory, corpora, config_file):
    """A short pretraining of two tasks, tested on the other corpus: folder and report."""
    out = tmp_path_factory.mktemp("pretrained") / "out"
    settings = made(
        {
            "corpus": str(corpora / "train"),
            "held_out": str(corpora / "valid"),
            "config": str(config_file),
            "tasks": "knowledge-masking,next-sentence",
            "max_steps": 40,
            "max_length": 48,
            "tokens_per_batch": 256,
            "learning_rate": 2e-2,
            "peak_gflops": 100.0,
            "log_every": 10,
        }
    )
    return out, train(settings, out, quiet=True).report


def test_the_report_has_figures_of_each_task_beside_what_needs_no_reading(pretrained):
    _, report = pretrained
    assert report["step"] == 40
    assert report["knowledge-masking.perplexity"] < 16
    assert 1 < report["knowledge-masking.perplexity.frequencies"] < 20
    assert 0 < report["knowledge-masking.word_accuracy.commonest"] < 0.5
    assert 0 <= report["next-sentence.accuracy"] <= 1
    assert {"next-sentence.perplexity", "next-sentence.class_loss", "next-sentence.accuracy.commonest"} <= report.keys()


def test_the_log_has_speed_and_shares(pretrained):
    out, _ = pretrained
    last = rows(out)[-1]
    assert {"tokens_per_second", "gflops", "share_of_peak", "done.next-sentence", "stage"} <= last.keys()
    assert last["share_of_peak"] == pytest.approx(last["gflops"] / 100)
    assert last["done.knowledge-masking"] == last["done.next-sentence"] == 20


def test_the_encoder_and_its_heads_are_loaded_from_the_folder(pretrained):
    out, _ = pretrained
    network = EncoderForPretraining.from_pretrained(out / "encoder")
    assert network.cls.seq_relationship is not None
    arrays = {name: array.numpy() for name, array in network.encoder.named_parameters()}
    assert_same(arrays, parameters(out))


@pytest.mark.parametrize("layout", ["huggingface", "paddlenlp"])
def test_the_folder_is_what_others_read_as_make_parity_shows(layout, given, tmp_path):
    """It is what save_pretrained writes, which transformers and PaddleNLP read in scripts/parity."""
    settings = given(tasks=("knowledge-masking", "next-sentence"), layout=layout, max_steps=4, tokens_per_batch=256)
    train(made(settings), tmp_path / "run", quiet=True)
    network = EncoderForPretraining.from_pretrained(tmp_path / "run" / "encoder")
    network.save_pretrained(tmp_path / "again", layout=layout)
    Tokenizer.from_pretrained(tmp_path / "run" / "encoder").save_pretrained(tmp_path / "again")
    assert snapshot(tmp_path / "run" / "encoder") == snapshot(tmp_path / "again")


def test_the_encoder_is_fine_tuned_by_the_command(pretrained, tmp_path, capsys):
    out, _ = pretrained
    write_tsv(tmp_path / "train.tsv", films(16, seed=1))
    words = ["--task", "classification", "--train", f"{tmp_path}/train.tsv", "--dev", "0.5", "--passes", "1", "--quiet"]
    assert (
        main(["train", *words, "--encoder", f"{out}/encoder", "--max-length", "16", "--output", f"{tmp_path}/run"]) == 0
    )
    assert "accuracy" in capsys.readouterr().out


def test_a_pretraining_begins_with_the_encoder_and_heads_of_another(pretrained, given):
    out, _ = pretrained
    settings = made(given(config=None, encoder=str(out / "encoder"), tasks=("next-sentence",)))
    network = PretrainingJob.prepare(settings).network
    known = EncoderForPretraining.from_pretrained(out / "encoder")
    head = network.networks["next-sentence"]
    assert np.array_equal(head.classifier.weight.numpy(), known.cls.seq_relationship.weight.numpy()[:, ::-1])
    assert np.array_equal(head.words.decoder_bias.numpy(), known.cls.predictions.decoder_bias.numpy())


def test_a_new_head_begins_with_the_frequencies_of_the_corpus(given, corpora):
    job = PretrainingJob.prepare(made(given()))
    expected = log_frequencies(open_corpus(corpora / "train"), 32)
    assert expected.min() < expected.max()
    head = job.network.networks["knowledge-masking"].words
    assert np.array_equal(head.decoder_bias.numpy(), expected)


CONTINUAL = {"tasks": TASKS, "order": "continual", "keep": 1}


@pytest.mark.parametrize(
    "changes", [{}, {"tasks": TASKS}, CONTINUAL, {**CONTINUAL, "gradient_accumulation_steps": 2, "save_every": 1}]
)
def test_a_pretraining_resumes_to_the_bit(given, tmp_path, changes):
    settings = given(**changes)
    passes = len(made(settings).strategy().table)
    # The rates that it tells of are times.
    assert_resumes_exactly(lambda folder: pretrain(folder, **settings).without(Throughput), tmp_path, passes=passes)


@pytest.mark.parametrize(("tasks", "weight"), [(TASKS[:1], 7), (TASKS, 1)])
def test_batches_of_an_update_weigh_what_their_loss_is_a_mean_over(given, tmp_path, tasks, weight):
    runner = pretrain(tmp_path, **given(tasks=tasks, gradient_accumulation_steps=2))
    assert runner[Accumulate].weight({"task": TASKS[0], "word_labels": [4] * 7, "lengths": [9, 9]}) == weight


def test_rates_and_stages_count_updates_of_several_batches(given, tmp_path):
    settings = made(given(**CONTINUAL, max_steps=10, gradient_accumulation_steps=3, log_every=1))
    stages = [sum(row.values()) for row in settings.strategy().table]
    assert settings.updates() == sum(-(-count // 3) for count in stages) == 4
    train(settings, tmp_path / "run", quiet=True)
    logged = [*{row["step"]: row for row in rows(tmp_path / "run")}.values()]
    assert [row["step"] for row in logged] == [1, 2, 3, 4]
    done = [sum(row[f"done.{name}"] for name in TASKS) for row in logged]
    assert (done[-1], logged[-1]["learning_rate"]) == (10, 0.0)
    assert stages[0] in done  # no update is of two stages


def test_the_command_resumes_what_was_stopped(given, tmp_path, capsys):
    class Stop(RunnerItem):
        passive = True

        def on_batch(self, state):
            if state.step == 3:
                state.stop("for a test")

    def words(folder):
        flags = [f"--{name.replace('_', '-')}={value}" for name, value in given().items()]
        return ["pretrain", *flags, "--quiet", "--output", str(folder)]

    cut, whole = tmp_path / "cut", tmp_path / "whole"
    pretrain(cut, **given()).insert_before(ParameterUpdater, Stop()).run(passes=1)
    assert max(row["step"] for row in rows(cut)) < 6
    assert main(words(cut)) == 0
    assert main(words(whole)) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["step"] == 6
    assert_same(parameters(cut), parameters(whole))


KILLED = """
import json, os, signal, sys
from onion import ParameterUpdater, RunnerItem
from onion.tasks.pretraining.pretrain import pretrain

class Kill(RunnerItem):
    passive = True

    def on_batch(self, state):
        if state.step == {step}:
            os.kill(os.getpid(), signal.SIGKILL)

settings = json.loads({settings!r})
pretrain({folder!r}, **settings).insert_before(ParameterUpdater, Kill()).run(passes=2)
"""


@pytest.mark.slow
def test_what_was_killed_ends_with_the_same_bits(given, tmp_path):
    settings = given(**CONTINUAL, save_every=2)
    flags = [f"--{name.replace('_', '-')}={_as_flag(value)}" for name, value in settings.items()]
    whole = tmp_path / "whole"
    assert main(["pretrain", *flags, "--quiet", "--output", str(whole)]) == 0
    for step in (1, 5):  # before there is a checkpoint, and in the second stage
        folder = tmp_path / f"killed at {step}"
        code = KILLED.format(step=step, settings=json.dumps(settings), folder=str(folder))
        killed = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, capture_output=True, timeout=PATIENCE, check=False
        )
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert not (folder / "encoder" / "model.safetensors").exists() or step > 2
        assert main(["pretrain", *flags, "--quiet", "--output", str(folder)]) == 0
        assert_same(parameters(folder), parameters(whole))


def _as_flag(value):
    return ",".join(value) if isinstance(value, tuple) else value


def test_an_extended_run_has_the_bits_of_one_whose_later_task_was_not_yet_drawn(given, tmp_path):
    table = [{"knowledge-masking": 4}, {"knowledge-masking": 2, "sentence-order": 4}]
    endless = {"schedule": "noam", "warmup_steps": 3, "max_steps": None}
    first = made(given(tasks=TASKS[:1], stages=table[:1], **endless))
    both = made(given(tasks=TASKS, stages=table, **endless))
    extended, whole = tmp_path / "extended", tmp_path / "whole"
    train(first, extended, quiet=True)
    with pytest.raises(CheckpointError, match=r"holds another run .* or add tasks to this run with --extend"):
        train(both, extended, quiet=True)
    turned = attrs.evolve(both, tasks=TASKS[::-1])
    with pytest.raises(CheckpointError, match="has the tasks knowledge-masking; list these first"):
        train(turned, extended, extend=True, quiet=True)
    assert train(both, extended, extend=True, quiet=True).report["step"] == 10
    train(both, whole, quiet=True)
    assert_same(parameters(extended), parameters(whole))


def test_a_run_whose_rates_end_with_it_is_not_extended(given, tmp_path):
    with pytest.raises(DataError, match="the schedule linear was planned for the batches of the saved run"):
        pretrain(tmp_path, extend=True, **given())


def test_a_run_whose_batches_weigh_otherwise_is_not_extended(given, tmp_path):
    table = [{"knowledge-masking": 4}, {"knowledge-masking": 2, "sentence-order": 4}]
    endless = {"schedule": "noam", "warmup_steps": 3, "max_steps": None, "gradient_accumulation_steps": 2}
    train(made(given(tasks=TASKS[:1], stages=table[:1], **endless)), tmp_path, quiet=True)
    with pytest.raises(CheckpointError, match="gradient_accumulation_steps weights batches differently"):
        train(made(given(tasks=TASKS, stages=table, **endless)), tmp_path, extend=True, quiet=True)
    more = [*table[:1], {"knowledge-masking": 2}]  # of the same task: its batches weigh as before
    report = train(made(given(tasks=TASKS[:1], stages=more, **endless)), tmp_path, extend=True, quiet=True).report
    assert report["step"] == 3


def test_files_of_tasks_count_by_their_content(given, tmp_path):
    folder = PretrainingFolder(tmp_path, made(given()), {})
    questions, digest = "ir-relevance.questions", "ir-relevance.questions_sha256"
    saved = {"options": {questions: "a.json", "masking.share": 0.4}, digest: "1"}
    moved = {"options": {questions: "b.json", "masking.share": 0.4}, digest: "1"}
    assert not [*folder.differences(saved, moved)]
    assert [*folder.differences(saved, {**moved, digest: "2"})] == ["the ir-relevance.questions has other content"]
    [told] = folder.differences({**saved, "options": {}}, {**moved, "options": {"masking.share": 0.4}})
    assert told.startswith("options ")
    extending = PretrainingFolder(tmp_path, made(given()), {}, extend=True)
    tasks = {"tasks": ["knowledge-masking"], "options": {}}
    assert not [*extending.differences(tasks, {**moved, "tasks": ["knowledge-masking", "ir-relevance"]})]
    assert [*extending.differences({**saved, **tasks, digest: "1"}, {**moved, **tasks, digest: "2"})]


def test_the_folder_of_another_command_is_refused_and_extend_is_named_where_it_helps(given, tmp_path):
    train(made(given(max_steps=1)), tmp_path / "run", quiet=True)
    settings = given(max_steps=2, tasks=TASKS)
    for changes, told in (({}, "--extend"), ({"learning_rate": 0.5}, "--force-resume")):
        with pytest.raises(CheckpointError, match=told):
            train(made({**settings, **changes}), tmp_path / "run", quiet=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "run.json").write_text('{"task": "classification"}')
    with pytest.raises(CheckpointError, match=r"holds another run .* --force-resume"):
        train(made(settings), tmp_path / "other", quiet=True)


def test_the_head_of_next_sentence_is_that_of_its_family(given, corpora, tmp_path):
    """BERT's has the class of a text that follows first, as transformers has it; ERNIE's has it second."""
    config = json.loads((corpora / "config.json").read_text())
    for family, order in (("bert", [1, 0]), ("ernie", [0, 1])):
        path = tmp_path / f"{family}.json"
        path.write_text(json.dumps({**config, "model_type": family}))
        settings = given(config=str(path), tasks=("knowledge-masking", "next-sentence"))
        network = PretrainingJob.prepare(made(settings)).network
        own = network.networks["next-sentence"].classifier
        own.bias.set_value(np.array([1, 2], np.float32))
        save_encoder(network, tmp_path / family, open_corpus(corpora / "train").tokenizer, "huggingface")
        written = EncoderForPretraining.from_pretrained(tmp_path / family).cls.seq_relationship
        assert np.array_equal(written.weight.numpy(), own.weight.numpy()[:, order])
        assert np.array_equal(written.bias.numpy(), np.array([1, 2])[order])
        again = PretrainingJob.prepare(made({**settings, "config": None, "encoder": str(tmp_path / family)})).network
        found = again.networks["next-sentence"].classifier
        assert np.array_equal(found.weight.numpy(), own.weight.numpy())
        assert found.bias.numpy().tolist() == [1, 2]


def test_of_several_stages_the_figures_of_each_task_after_each_are_told(given, corpora, tmp_path, capsys):
    settings = given(tasks=TASKS, order="continual", held_out=str(corpora / "valid"), max_steps=10)
    train(made(settings), tmp_path / "run", quiet=True)
    told = capsys.readouterr().out.splitlines()
    names, first, second = (line.split() for line in told[-5:-2])
    assert names == ["stage", *TASKS]
    assert (first[0], second[0]) == ("1", "2")
    perplexities = [
        row["knowledge-masking.perplexity"] for row in rows(tmp_path / "run") if "knowledge-masking.perplexity" in row
    ]
    assert [float(each[1]) for each in (first, second)] == pytest.approx(perplexities, rel=1e-2)
    assert (tmp_path / "run" / "forgetting.svg").read_text().startswith("<svg")


def test_the_settings_of_a_task_and_of_the_masks_reach_them(given):
    settings = given(tasks=TASKS, **{"sentence-order.max_length": 24, "masking.levels": "character"})
    job = PretrainingJob.prepare(made(settings))
    assert job.parts["sentence-order"].train.lengths.max() <= 24
    assert job.parts["knowledge-masking"].train.masking.levels == {"character": 1.0}


def test_a_file_of_settings_says_what_flags_say(given, tmp_path, capsys):
    (tmp_path / "settings.json").write_text(json.dumps(given()))
    words = ["--settings", f"{tmp_path}/settings.json", "--quiet", "--threads", "1"]
    assert main(["pretrain", *words, "--max-steps", "2", "--output", f"{tmp_path}/run"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["step"] == 2
    again = json.loads((tmp_path / "run" / "settings.json").read_text())
    assert made(again).max_steps == 2


def test_a_flag_takes_the_place_of_what_it_excludes_in_the_file(given, encoder_folder, tmp_path, capsys):
    stages = [{"knowledge-masking": 3}]
    file = given(max_steps=None, stages=stages)
    (tmp_path / "settings.json").write_text(json.dumps(file))
    words = ["--settings", f"{tmp_path}/settings.json", "--quiet", "--max-steps", "1"]
    assert main(["pretrain", *words, "--output", f"{tmp_path}/run"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["step"] == 1


def test_the_corpus_itself_is_no_held_out_text(given, corpora):
    with pytest.raises(DataError, match="is the corpus that is learned from; test on another one"):
        PretrainingJob.prepare(made(given(held_out=str(corpora / "train"))))


def test_another_pretraining_in_the_folder_is_refused(given, tmp_path):
    train(made(given(max_steps=1)), tmp_path / "run", quiet=True)
    with pytest.raises(CheckpointError, match=r"holds another run \(learning_rate 0.01 there, 0.5 here\)"):
        train(made(given(max_steps=1, learning_rate=0.5)), tmp_path / "run", quiet=True)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"encoder": "minilm"}, "give one of config, for random weights, and encoder"),
        ({"config": None}, "give one of config, for random weights, and encoder"),
        ({"max_steps": None}, "give one of max_steps, the batches of all tasks, and stages"),
        ({"keep": 1}, "keep is for order=continual"),
        (
            {"max_steps": None, "stages": [{"knowledge-masking": 3}], "order": "one-by-one"},
            "order is for max_steps; stages already set the order",
        ),
        ({"masking.levels": "words"}, "masking.levels must be one of character, word, .*, got 'words'"),
        ({"masking.levels": "entity"}, "masking.levels: .*train has no entities or phrases; build it with --entities"),
        ({"masking.levels": {"word": 1, "phrase": 1}}, "masking.levels: .*train has no phrases"),
        ({"adam_beta2": 1}, "adam_beta2 must be a number >= 0 and < 1"),
        ({"tasks": "knowledge-masking,knowledge-masking"}, "tasks must be some of knowledge-masking, .* each once"),
        ({"rates_by_task": True}, "the schedule linear ends with the training"),
        ({"schedule": "noam"}, "schedule noam: it does not depend on the length of the training, .* give warmup_steps"),
        (
            {"rates_by_task": True, "schedule": "noam", "warmup_steps": 1, "gradient_accumulation_steps": 2},
            "rates_by_task: an update of several batches may be of several tasks",
        ),
        ({"corpus": None}, "corpus is missing"),
        ({"tempo": 3}, "unknown setting 'tempo'; a pretraining has corpus"),
        ({"ema_decay": 0.9}, "unknown setting 'ema_decay'"),
        ({"tasks": "guessing"}, "tasks must be some of knowledge-masking"),
        ({"knowledge-masking.tempo": 3}, "unknown setting 'tempo'"),
        ({"masking.tempo": 3}, "unknown setting 'tempo'"),
        ({"guessing.max_length": 3}, "guessing.max_length: no task of this pretraining is called guessing"),
        ({"knowledge-masking.max_length": 64}, "knowledge-masking.max_length 64: the encoder takes 3 to 48 tokens"),
        ({"max_length": 64}, "knowledge-masking.max_length 64: the encoder takes 3 to 48 tokens"),
        ({"max_steps": 1, "tasks": TASKS}, "max_steps has no batch for sentence-order"),
        ({"max_steps": None, "stages": [{"next-sentence": 3}]}, "stages has no batch for knowledge-masking"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_written(given, tmp_path, changes, told):
    with pytest.raises(DataError, match=told):
        train(made(given(**changes)), tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()


def test_an_encoder_of_another_vocabulary_is_refused(given, encoder_folder):
    with pytest.raises(WeightsError, match="its tokenizer is not the one that the corpus was built with"):
        PretrainingJob.prepare(made(given(config=None, encoder=str(encoder_folder))))


def test_a_pretrained_encoder_with_fewer_words_than_its_tokenizer_is_refused(pretrained, given, tmp_path):
    out, _ = pretrained
    folder = tmp_path / "few"
    shutil.copytree(out / "encoder", folder)
    few = attrs.evolve(load_encoder(folder).config, vocab_size=8)
    new_encoder(few).save_pretrained(folder)
    with pytest.raises(WeightsError, match="its tokenizer has 20 tokens, and its encoder word embeddings for 8; use"):
        PretrainingJob.prepare(made(given(config=None, encoder=str(folder))))


def test_too_few_embeddings_are_refused(given, corpora, tmp_path):
    few = json.loads((corpora / "config.json").read_text())
    (tmp_path / "words.json").write_text(json.dumps({**few, "vocab_size": 8}))
    with pytest.raises(WeightsError, match="vocab_size is 8, and the corpus has a vocabulary of 20 words"):
        PretrainingJob.prepare(made(given(config=str(tmp_path / "words.json"))))
    ids = {"model_type": "ernie", "use_task_id": True, "task_type_vocab_size": 2}
    (tmp_path / "tasks.json").write_text(json.dumps({**few, **ids}))
    with pytest.raises(DataError, match="the encoder has 2 task embeddings, too few for sentence-order"):
        PretrainingJob.prepare(made(given(config=str(tmp_path / "tasks.json"), tasks=TASKS)))


def test_too_few_types_of_tokens_are_refused(given, corpora, tmp_path):
    few = json.loads((corpora / "config.json").read_text())
    (tmp_path / "types.json").write_text(json.dumps({**few, "type_vocab_size": 1}))
    config = str(tmp_path / "types.json")
    with pytest.raises(
        DataError, match="sentence-order has 2 types of tokens, and the encoder 1; raise type_vocab_size"
    ):
        PretrainingJob.prepare(made(given(config=config, tasks=TASKS)))
    one = {"tasks": "sentence-reordering", "sentence-reordering.token_types": 1}
    PretrainingJob.prepare(made(given(config=config, **one)))


def test_positions_that_are_not_trained_are_told(given, caplog):
    PretrainingJob.prepare(made(given()))
    assert not caplog.records
    PretrainingJob.prepare(made(given(max_length=32)))
    [record] = caplog.records
    assert "the encoder takes 48 tokens, and examples have at most 32" in record.getMessage()


def test_the_corpus_that_lacks_something_is_named(given, corpora, tmp_path):
    text = tmp_path / "short.txt"
    text.write_text("The cat sees a tree.\n\nThe dog sees a tree.\n", encoding="utf-8")
    tokenizer = Tokenizer.from_pretrained(corpora / "vocabulary")
    Build(inputs=[str(text)], tokenizer=tokenizer, segmenter=TokenizerWords()).run(tmp_path / "short")
    for name in ("held_out", "corpus"):
        with pytest.raises(DataError, match=r"short: sentence-order: no document of the corpus has two sentences"):
            PretrainingJob.prepare(made(given(tasks=TASKS, **{name: str(tmp_path / "short")})))


def test_the_onion_is_the_user_s_to_change(given, tmp_path):
    runner = pretrain(tmp_path, **given())
    assert runner[Saver].every == 2
    assert isinstance(runner[TaskSampler].tasks["knowledge-masking"].provider, DataProvider)


@pytest.mark.parametrize("who", WRITERS)
def test_files_of_other_systems_are_learned_from_with_their_tokenizer(tmp_path, corpora, config_file, who):
    tokenizer = Tokenizer.from_pretrained(corpora / "vocabulary")
    texts = (corpora / "train.txt").read_text().split("\n\n")
    write, ending, _ = WRITERS[who]
    write(tmp_path / "a", [[_ids(tokenizer, each) for each in text.split(". ")] for text in texts])
    given = {"corpus": str(tmp_path / f"a{ending}"), "config": str(config_file), "max_steps": 2, "max_length": 48}
    with pytest.raises(DataError, match=r"give that too \(tokenizer\)"):
        pretrain(tmp_path / "run", **given)
    given["tokenizer"] = str(corpora / "vocabulary")
    assert pretrain(tmp_path / "run", **given).run(passes=1).step == 2
    assert Tokenizer.from_pretrained(tmp_path / "run" / "encoder").vocab_size == tokenizer.vocab_size
    (tmp_path / "other").mkdir()
    shutil.copy(corpora / "vocabulary" / "vocab.txt", tmp_path / "other")
    with (tmp_path / "other" / "vocab.txt").open("a") as file:
        file.write("more\n")
    with pytest.raises(DataError, match=r"train: has a tokenizer of its own, and not .*other; leave it out"):
        pretrain(tmp_path / "more", **{**given, "corpus": str(corpora / "train"), "tokenizer": str(tmp_path / "other")})


def _ids(tokenizer, text):
    return tokenizer([text])[0].ids[1:-1]  # without [CLS] and [SEP]
