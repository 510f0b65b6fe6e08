"""The examples: what is compared in each, and the command lines of the sides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

THREADS = 2


@dataclass(frozen=True)
class Figure:
    """A number that the last line of an example tells.

    Attributes:
        name: in that line.
        title: in the table.
        times: it is told times this; shares are told in percent.
    """

    name: str
    title: str
    times: float = 100.0


@dataclass(frozen=True)
class Example:
    """An example, run in several variants with several seeds.

    Attributes:
        name: what ``NAMES`` calls it; its file is ``examples/NAME.py``.
        title: of its part of the page.
        text: what is compared.
        files: that it reads, below the folder of data; a result stands for their content too.
        variants: name -> command line after ``python``, in the order in which they are run. ``{data}`` is the folder of
            data, ``{seed}`` the seed, ``{own}`` a folder for what the variant leaves, and ``{NAME}`` that of another
            variant of the same seed, which has to come before.
        figures: the columns of numbers.
        seeds: a run each.
    """

    name: str
    title: str
    text: str
    files: tuple[str, ...]
    variants: Mapping[str, str]
    figures: tuple[Figure, ...]
    seeds: tuple[int, ...] = (1, 2, 3)


ACCURACY = Figure("accuracy", "accuracy")


def _of(folder: str) -> tuple[str, str]:
    return f"glue/{folder}/train.tsv", f"glue/{folder}/dev.tsv"


EXAMPLES = (
    Example(
        "joint_mrpc",
        "A task with helpers: MRPC",
        "MiniLM is fine-tuned on MRPC (3,668 pairs of sentences: do they say the same?), alone and together with three "
        "helping tasks over the same encoder: RTE (does one sentence follow from the other?), STS-B (how alike are two "
        "sentences, from 0 to 5?) and the masked words of MRPC's own texts. Each batch is of one task, drawn in "
        "proportion to the ratios 1 : 0.5 : 0.5 : 0.25; both sides see the very same batches of MRPC, and begin with "
        "the same head. Figures are on MRPC's 408 dev pairs.",
        (*_of("mrpc"), "glue/rte/train.tsv", "glue/sts-b/train.tsv"),
        {
            "alone": "examples/joint_mrpc.py {data}/glue --seed {seed} --alone",
            "joint": "examples/joint_mrpc.py {data}/glue --seed {seed}",
        },
        (ACCURACY, Figure("f1", "F1")),
    ),
    Example(
        "gan_bert",
        "Few labels and a generator: GAN-BERT on 1 % of SST-2",
        "GAN-BERT (Croce, Castellucci and Basili 2020) has 1 % of SST-2's labels, other texts of SST-2 without labels, "
        "and a generator of fake sentence vectors that the discriminator, a classifier with one label more, learns to "
        "tell from real ones. A batch is 32 labelled and 32 other sentences; each of the 673 labels is seen ten times, "
        "each time beside another sentence without one. Plain fine-tuning has the very same batches of labels. Figures "
        "are on SST-2's 872 dev sentences.",
        _of("sst-2"),
        {
            "plain": "examples/gan_bert.py {data}/glue/sst-2 --seed {seed} --plain",
            "gan": "examples/gan_bert.py {data}/glue/sst-2 --seed {seed}",
        },
        (ACCURACY,),
    ),
    Example(
        "distillation",
        "A small student: distillation on SST-2",
        "MiniLM's six layers are fine-tuned on SST-2; that teacher then teaches a student, which begins as two of "
        "MiniLM's layers, by its soft targets (Hinton et al. 2015), hidden states and attention. Beside it the same "
        "student learns alone, from the labels. Figures are on SST-2's 872 dev sentences, as onion train has them: of "
        "four checkpoints a pass, the one that is best on these very sentences. How much faster the student is, "
        "`make bench NAMES=layers` measures, in turns ([results](../benchmarks/results.md)).",
        _of("sst-2"),
        {
            "teacher": "examples/distillation.py {data}/glue/sst-2 --role teacher --seed {seed} --out {own}",
            "student": (
                "examples/distillation.py {data}/glue/sst-2 --role student --seed {seed} --out {own} "
                "--teacher {teacher}"
            ),
            "alone": "examples/distillation.py {data}/glue/sst-2 --role alone --seed {seed} --out {own}",
        },
        (
            ACCURACY,
            Figure("parameters", "million parameters", times=1e-6),
        ),
        seeds=(1,),
    ),
    Example(
        "siamese",
        "Two towers: sentence similarity on STS-B",
        "Two towers, which are one encoder, turn the two sentences of a pair into vectors; their cosine is learned "
        "(SBERT, Reimers and Gurevych 2019). Figures are Spearman's correlation with the labels of STS-B's "
        "1,500 dev pairs, with MiniLM as it comes and after fine-tuning. all-MiniLM-L6-v2 "
        "was itself trained to give such vectors.",
        _of("sts-b"),
        {"siamese": "examples/siamese.py {data}/glue/sts-b --seed {seed} --out {own}"},
        (Figure("before", "Spearman before"), Figure("after", "Spearman after")),
        seeds=(1,),
    ),
)


def chosen(names: list[str]) -> list[Example]:
    """Return the examples of these names, in the order of the page; all for none.

    Raises:
        KeyError: there is no example of a name.
    """
    known = {example.name: example for example in EXAMPLES}
    for name in names:
        known[name]
    return [example for example in EXAMPLES if not names or example.name in names]
