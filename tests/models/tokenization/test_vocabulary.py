import logging

import pytest

from onion.errors import WeightsError
from onion.models.tokenization.vocabulary import read_vocab
from onion.models.tokenizer import Tokenizer

SPECIAL = ["[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]"]


def write(folder, text):
    (folder / "vocab.txt").write_bytes(text.encode())
    return folder / "vocab.txt"


@pytest.mark.parametrize("end", ["\n", ""])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_with_and_without_ids_and_a_last_line_without_an_end(tmp_path, newline, end):
    plain = write(tmp_path, newline.join(["[PAD]", "a", "中"]) + end)
    assert read_vocab(plain) == {"[PAD]": 0, "a": 1, "中": 2}
    with_ids = write(tmp_path, newline.join(["a\t1", "[PAD]\t0", "中\t2"]) + end)
    assert read_vocab(with_ids) == {"[PAD]": 0, "a": 1, "中": 2}


def test_a_byte_order_mark_is_no_part_of_the_first_token(tmp_path):
    assert read_vocab(write(tmp_path, "\ufeff[PAD]\na\n")) == {"[PAD]": 0, "a": 1}


@pytest.mark.parametrize("separator", ["\u2028", "\x0b", "\x1c", "\x85"])
def test_only_a_line_feed_ends_a_line(tmp_path, separator):
    """U+2028 is a token of bert-base-chinese."""
    assert read_vocab(write(tmp_path, f"a\n{separator}\nb\n")) == {"a": 0, separator: 1, "b": 2}


@pytest.mark.parametrize("lines", [["$", "a", "$", "b"], ["$\t0", "a\t1", "$\t2", "b\t3"]])
def test_of_a_token_that_occurs_twice_the_later_id_counts_and_the_log_says_so_once(tmp_path, caplog, lines):
    with caplog.at_level(logging.WARNING, "onion"):
        assert read_vocab(write(tmp_path, "\n".join(lines))) == {"$": 2, "a": 1, "b": 3}
    (record,) = caplog.records
    assert record.getMessage().endswith("vocab.txt: occurs more than once, the later id counts: $")


def test_empty_lines_take_an_id_and_are_not_worth_a_word(tmp_path, caplog):
    assert read_vocab(write(tmp_path, "a\n\n\nb\n\n"))["b"] == 3
    assert not caplog.records


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\t0\nb\tone\n", r"vocab\.txt, line 2: 'one' is not an id"),
        ("a\t0\nb\t-1\n", r"vocab\.txt, line 2: '-1' is not an id"),
        ("a\t0\nb\t1.0\n", r"vocab\.txt, line 2: '1.0' is not an id"),
        ("a\t0\nb\t²\n", r"vocab\.txt, line 2: '²' is not an id"),
        (f"a\t0\nb\t{'9' * 5000}\n", r"vocab\.txt, line 2: '9{20}' is not an id"),
        ("a\t0\nb\t\n", r"vocab\.txt, line 2: '' is not an id"),
        ("a\t0\nb\n", r"vocab\.txt, line 2: 0 tabs, not one"),
        ("a\t0\nb\t1\t2\n", r"vocab\.txt, line 2: 2 tabs, not one"),
        ("a\nb\nc\t2\n", r"vocab\.txt, line 3: has a tab, but the first line has no id; add ids to all lines"),
        ("a\t0\nb\t3\nc\t1\n", r"vocab\.txt, line 2: id 3 leaves a gap, no line has id 2"),
        ("a\t1\nb\t2\n", r"vocab\.txt, line 1: id 1 leaves a gap, no line has id 0"),
        ("a\t0\nb\t1\nc\t1\n", r"vocab\.txt, line 3: id 1 is in line 2 too"),
    ],
)
def test_a_line_that_does_not_fit_is_named(tmp_path, text, message):
    path = write(tmp_path, text)
    with pytest.raises(WeightsError, match=message):
        read_vocab(path)
    with pytest.raises(WeightsError, match=message):
        Tokenizer.from_pretrained(tmp_path)


@pytest.mark.parametrize("form", ["{0}", "{0}\t{1}"])
def test_a_special_token_may_not_occur_twice(tmp_path, form):
    rows = [*SPECIAL, "a", "[CLS]", "$", "$", "[PAD]"]
    write(tmp_path, "\n".join(form.format(token, number) for number, token in enumerate(rows)))
    with pytest.raises(WeightsError, match=r"vocab\.txt, line 7: the special token \[CLS\] is in line 2 too"):
        Tokenizer.from_pretrained(tmp_path)
    assert read_vocab(tmp_path / "vocab.txt", ["[SEP]"])["[CLS]"] == 6


def test_an_empty_file_lacks_all_special_tokens(tmp_path):
    write(tmp_path, "")
    with pytest.raises(WeightsError, match=r"vocab\.txt: special tokens are missing .*\[PAD\], \[UNK\]"):
        Tokenizer.from_pretrained(tmp_path)


def test_the_vocabulary_is_as_large_as_its_largest_id_asks_for(tmp_path, capfd):
    """A token that occurs twice leaves an id that no token has; the embedding has a row for it all the same."""
    lines = [f"{token}\t{number}" for number, token in enumerate([*SPECIAL, "$", "a", "$"])]
    write(tmp_path, "\n".join(lines))
    tokenizer = Tokenizer.from_pretrained(tmp_path)
    assert tokenizer.vocab_size == 8
    assert tokenizer(["a $"])[0].ids.tolist() == [1, 6, 7, 2]
    tokenizer.save_pretrained(tmp_path / "saved")
    again = Tokenizer.from_pretrained(tmp_path / "saved")
    assert again.vocab_size == 8
    assert again(["a $"])[0].ids.tolist() == [1, 6, 7, 2]
    capfd.readouterr()
