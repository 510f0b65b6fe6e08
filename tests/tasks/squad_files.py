"""Files of SQuAD's form for the tests of reading comprehension: small ones, and ones with anything in them."""

import json

from hypothesis import strategies as st

TINY = {"max_length": 12, "max_query_length": 4, "doc_stride": 3, "max_answer_length": 3}
"""Settings for windows that the tiny encoder has positions for."""


def squad(path, *asked):
    """Write a file: of each question its context, text and answers (text, start)."""
    paragraphs = [
        {
            "context": context,
            "qas": [{"id": f"q{number}", "question": text, "answers": [answer_of(*each) for each in answers]}],
        }
        for number, (context, text, answers) in enumerate(asked)
    ]
    path.write_text(json.dumps({"data": [{"title": "t", "paragraphs": paragraphs}]}), encoding="utf-8")
    return path


def answer_of(text, start):
    return {"text": text, "answer_start": start}


ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4), st.just("\ud800")),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=3), inner, max_size=2)),
    max_leaves=4,
)


@st.composite
def files(draw):
    """The content of a file: SQuAD's form, in which any part may be anything, missing or twice; or any bytes."""
    wild = draw(st.sampled_from([0, 0, 1, 3]))
    if wild == 3 and draw(st.booleans()):
        return draw(st.binary(max_size=40))

    def part(strategy):
        return draw(ANYTHING if wild and draw(st.integers(0, 40)) < wild else strategy)

    def some(make, most=3):
        return part(st.just([make() for _ in range(draw(st.integers(0, most)))]))

    def fields(**made):
        return {name: value for name, value in made.items() if not (wild and draw(st.integers(0, 40)) < wild)}

    numbers = iter(range(99))
    texts = st.text("a film中。 \u0301\u2028\U0001f600", max_size=30)
    context = part(texts)

    def answer():
        start = draw(st.integers(0, 9))
        text = context[start : start + draw(st.integers(1, 9))] if isinstance(context, str) else "a"
        return fields(text=part(st.just(text or "a")), answer_start=part(st.just(start)))

    def question():
        own = part(st.just(f"q{0 if wild == 3 else next(numbers)}"))
        return fields(id=own, question=part(texts), answers=some(answer, 2))

    content = {"data": some(lambda: fields(paragraphs=some(lambda: fields(context=context, qas=some(question)))))}
    return json.dumps(content).encode()
