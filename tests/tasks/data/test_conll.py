import pytest

from onion.errors import DataError
from onion.tasks.data.conll import conll_rows, to_iob2


def rows_of(path, text):
    path.write_text(text, encoding="utf-8")
    return list(conll_rows(path))


def test_sentences_of_two_or_more_columns_with_tabs_or_spaces(tmp_path):
    text = "-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG\nrejects VBZ B-VP O\n\n\n我\tO\n爱\tO\n"
    assert rows_of(tmp_path / "a.conll", text) == [
        (3, {"text_a": ["EU", "rejects"], "label": ["B-ORG", "O"]}),
        (7, {"text_a": ["我", "爱"], "label": ["O", "O"]}),
    ]


def test_tokens_without_tags_have_no_label(tmp_path):
    assert rows_of(tmp_path / "a.conll", "a\nb\n\nc\n") == [(1, {"text_a": ["a", "b"]}), (4, {"text_a": ["c"]})]


@pytest.mark.parametrize(
    ("tags", "iob2"),
    [
        ("I-PER I-PER O I-LOC", "B-PER I-PER O B-LOC"),  # IOB1
        ("I-PER B-PER I-PER I-LOC", "B-PER B-PER I-PER B-LOC"),
        ("B-PER I-PER B-PER", "B-PER I-PER B-PER"),  # IOB2
        ("B-PER E-PER S-PER O S-LOC", "B-PER I-PER B-PER O B-LOC"),  # BIOES
        ("B-PER L-PER U-PER", "B-PER I-PER B-PER"),  # BILOU
        ("O I-PER-SON", "O B-PER-SON"),
    ],
)
def test_tags_become_iob2(tags, iob2):
    assert " ".join(to_iob2(tags.split())) == iob2


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a O\nb\n", r"a\.conll:2: 'b' has no tag; a line has a token and its tag, or is blank"),
        ("a\n\nb O\n", r"a\.conll:3: 'b' has a tag, unlike those before"),
        ("a X\n", r"a\.conll:1: 'X' is no tag; tags are O, B-KIND and I-KIND, or those of BIOES"),
        ("a B-\n", r"a\.conll:1: 'B-' is no tag"),
        ("1 a O\n2 b B-X\n", r"a\.conll:1: the first column numbers the tokens; leave it out: the first has to be the"),
        ("a PER\n", r"a\.conll:1: 'PER' is no tag"),
    ],
)
def test_broken_lines_are_named(tmp_path, text, what):
    with pytest.raises(DataError, match=what):
        rows_of(tmp_path / "a.conll", text)
