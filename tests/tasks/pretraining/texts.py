"""Corpora of written texts, what examples say, and short trainings on them."""

import numpy as np
import paddle

from onion import DataProvider, Evaluator, Forward, GradientMachine, ParameterUpdater, Runner
from onion.models.auto import new_encoder
from onion.models.config import EncoderConfig
from onion.models.tokenizer import Tokenizer
from onion.tasks.collector import Decoder
from onion.tasks.pretraining.corpus.corpus import MemoryCorpus
from onion.tasks.pretraining.corpus.encoding import DocumentEncoder
from onion.tasks.pretraining.corpus.segmentation.tokenizer_words import TokenizerWords
from onion.tasks.pretraining.examples import collate
from onion.tasks.pretraining.metric import PretrainingMetric
from onion.tasks.pretraining.networks import PretrainingNetwork

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def tokenizer_of(folder, tokens):
    """A tokenizer that knows some tokens."""
    (folder / "vocab.txt").write_text("\n".join([*SPECIAL, *dict.fromkeys(tokens)]) + "\n", encoding="utf-8")
    return Tokenizer.from_pretrained(folder)


def corpus_of(tokenizer, *documents):
    """A corpus of documents, each a list of paragraphs."""
    made = DocumentEncoder(tokenizer, TokenizerWords())(documents)
    parts = np.cumsum(made.lengths)[:-1]
    pairs = zip(np.split(made.tokens, parts), np.split(made.flags, parts), strict=True)
    return MemoryCorpus.of(pairs, tokenizer, f"{documents}")


def said(tokenizer, example, space=" "):
    """The text of an example, without [CLS], with / for [SEP]."""
    tokens = tokenizer.tokens(example["ids"].tolist())
    assert tokens[0] == "[CLS]"
    return space.join("/" if token == "[SEP]" else token for token in tokens[1:])


def drawn(task, corpus, passes=60, space=""):
    """All pairs of text and class that are drawn in some passes, each checked against what an example has to be."""
    samples, found = task.samples(corpus, seed=1), set()
    for pass_id in range(passes):
        for number, example in enumerate(samples.of_pass(pass_id)):
            check(task, corpus.tokenizer, example, samples.lengths[number])
            found.add((said(corpus.tokenizer, example, space), task.classes[example["label"]]))
    return found


def check(task, tokenizer, example, most):
    """Check types, special tokens and the length of an example."""
    ids, types, flags = example["ids"], example["types"], example["flags"]
    assert (ids.dtype, types.dtype, flags.dtype) == (np.int64, np.int64, np.uint8)
    assert len(ids) == len(types) == len(flags) <= most <= task.max_length
    special = np.isin(ids, (tokenizer.cls_id, tokenizer.sep_id))
    assert flags[special].tolist() == [0] * special.sum()
    assert ids[-1] == tokenizer.sep_id
    assert types[0] == 0
    assert (np.diff(types) >= 0).all()


def same(one, other):
    """Whether two examples are equal."""
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def assert_drawn_by_seed_and_pass(task, corpus):
    """The same seed, pass and number give the same example, others give others."""
    samples, again, other = (task.samples(corpus, seed) for seed in (1, 1, 2))
    assert samples.fingerprint == again.fingerprint != other.fingerprint
    first, count = samples.of_pass(3), len(samples)
    assert all(same(first[each], again.of_pass(3)[each]) for each in range(count))
    assert not all(same(first[each], samples.of_pass(4)[each]) for each in range(count))
    assert not all(same(first[each], other.of_pass(3)[each]) for each in range(count))


def examples_of(task, corpus, passes):
    samples = task.samples(corpus, seed=0)
    return [example for pass_id in range(passes) for example in samples.of_pass(pass_id)]


def learnt(task, train, held_out, passes, rate=5e-3):
    """Train a tiny encoder; return its accuracy on held-out examples."""
    paddle.seed(0)
    config = EncoderConfig(
        vocab_size=64,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=32,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.1,
    )
    network = PretrainingNetwork(new_encoder(config), None, len(task.classes), task.each_token)
    Runner(
        DataProvider(train, 64, shuffle=True, collate=collate, prefetch=0),
        ParameterUpdater(paddle.optimizer.Adam(rate, parameters=network.parameters())),
        GradientMachine(network),
    ).run(passes=passes)
    metric = PretrainingMetric(task.classes, words=False)
    Runner(DataProvider(held_out, 256, collate=collate), Evaluator(metric), Decoder(network), Forward(network)).run(
        passes=1
    )
    return metric.result()["accuracy"]
