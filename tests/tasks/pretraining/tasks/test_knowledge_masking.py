import numpy as np
import pytest

from onion.errors import DataError
from onion.models.auto import new_encoder
from onion.models.config import EncoderConfig
from onion.models.pretraining_heads import WordPrediction
from onion.tasks.pretraining.examples import collate
from onion.tasks.pretraining.masking.masking import MaskedExamples, Masking
from onion.tasks.pretraining.networks import PretrainingNetwork
from onion.tasks.pretraining.tasks.knowledge_masking import KnowledgeMasking
from tests.tasks.arrays import tensors
from tests.tasks.pretraining.texts import check, corpus_of, said, tokenizer_of

DOCUMENTS = ["甲乙。丙丁。", "戊己庚。"], ["子丑。"], ["寅卯寅卯寅卯寅卯。癸。"]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return tokenizer_of(tmp_path_factory.mktemp("vocabulary"), "甲乙丙丁戊己庚辛壬癸子丑寅卯。")


def test_examples_of_hand_written_documents(tokenizer):
    task = KnowledgeMasking(max_length=9)
    samples = task.samples(corpus_of(tokenizer, *DOCUMENTS), 0)
    found = list(samples.of_pass(0))
    for example, most in zip(found, samples.lengths, strict=True):
        check(task, tokenizer, example, most)
        assert example.keys() == {"ids", "types", "flags"}
        assert not example["types"].any()
    texts = [said(tokenizer, example, "") for example in found]
    assert texts == ["甲乙。丙丁。/", "戊己庚。/", "子丑。/", "寅卯寅卯寅卯寅/", "卯。癸。/"]
    assert [said(tokenizer, each, "") for each in samples.of_pass(7)] == texts
    assert samples.lengths.tolist() == [8, 6, 5, 9, 6]


def test_a_corpus_without_text_and_a_length_without_room_are_refused(tokenizer):
    with pytest.raises(DataError, match="knowledge-masking: the corpus has no text"):
        KnowledgeMasking().samples(corpus_of(tokenizer, [""]), 0)
    with pytest.raises(DataError, match="max_length 2 leaves no room for text beside 2 special tokens"):
        KnowledgeMasking(max_length=2).samples(corpus_of(tokenizer, *DOCUMENTS), 0)


def test_without_masks_there_is_nothing_to_learn():
    with pytest.raises(DataError, match="without masks there is nothing to predict"):
        KnowledgeMasking(masks=False)


def test_the_network_takes_the_masked_batch(tokenizer):
    samples = KnowledgeMasking().samples(corpus_of(tokenizer, *DOCUMENTS), 0)
    batch = tensors(collate(list(MaskedExamples(samples, Masking(), tokenizer, 0).of_pass(0))))
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = EncoderConfig(vocab_size=tokenizer.vocab_size, max_position_embeddings=128, **sizes)
    network = PretrainingNetwork(new_encoder(config), WordPrediction(config))
    logits = network(batch)
    assert logits.words.shape == [len(batch["masked_positions"]), tokenizer.vocab_size]
    assert float(network.loss(logits, batch)) == pytest.approx(np.log(tokenizer.vocab_size), rel=0.3)
