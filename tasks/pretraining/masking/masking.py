"""Masks that are a function of seed, pass and example.

Source: BERT (Devlin et al. 2018, arXiv 1810.04805, section 3.1) and ERNIE 1.0 (Sun et al. 2019, arXiv 1904.09223,
section 3.2). How ERNIE mixes the kinds of unit is not published; its code draws one for a whole file in each pass. Ours
is drawn for each example in each pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from onion.data.source import Indexed
from onion.errors import DataError
from onion.messages import shown
from onion.models.tokenizer import Tokenizer
from onion.tasks.data.features.hashing import digest_of_values
from onion.tasks.masked_lm.masking import MASKED, SWAPPED, chosen_places, special_ids, word_ids
from onion.tasks.pretraining.examples import Example, PassExamples
from onion.tasks.pretraining.masking.levels import LEVELS
from onion.tasks.pretraining.masking.units import first_of_units, kinds_of
from onion.tasks.pretraining.sampling.draws import Draws
from onion.tasks.validators import PART, SHARE, as_float
from onion.validation import is_number

VERSION = 1
"""Of the way masks are drawn. Raise it when the same seed and settings give others."""


def _shares(levels: Any) -> Any:
    """One name stands for all examples; anything but a name or a mapping stays as it is."""
    if isinstance(levels, str):
        return {levels: 1.0}
    return {name: as_float(share) for name, share in levels.items()} if isinstance(levels, Mapping) else levels


def _as_given(levels: Any) -> Any:
    """Return the name that stood for all examples, if there was one."""
    alone = isinstance(levels, Mapping) and list(levels.values()) == [1.0]
    return next(iter(levels)) if alone else levels


def _check_levels(masking: Any, field: Any, levels: Any) -> None:
    known = isinstance(levels, Mapping) and levels and all(name in LEVELS for name in levels)
    if not known or not all(is_number(share) and share >= 0 for share in levels.values()) or not sum(levels.values()):
        wanted = f'one of {", ".join(LEVELS)}, or shares of several in JSON such as {{"word": 1, "entity": 2}}'
        raise DataError(f"levels must be {wanted}, got {shown(_as_given(levels))}")


@attrs.frozen(kw_only=True)
class Masking:
    """What is masked, and by what.

    Attributes:
        share: the probability of a unit to be chosen. Default 0.15.
        levels: kinds of unit -> share of the examples, which need not add up to 1; or the name of one kind. At
            ``"entity"`` a unit is an entity, outside of entities a phrase, else a word; at ``"phrase"`` a phrase or
            else a word; at ``"word"`` a word with all its pieces; at ``"character"`` a token, ``##`` pieces too.
            Default ``"word"``.
        masked: the share of the tokens of chosen units that become ``[MASK]``. Default 0.8.
        swapped: the share that become a random word, drawn for each token. Default 0.1; the others stay.
    """

    share: float = attrs.field(default=0.15, converter=as_float, validator=SHARE)
    levels: Mapping[str, float] = attrs.field(default="word", converter=_shares, validator=_check_levels)
    masked: float = attrs.field(default=MASKED, converter=as_float, validator=PART)
    swapped: float = attrs.field(default=SWAPPED, converter=as_float, validator=PART)

    def __attrs_post_init__(self) -> None:
        if self.masked + self.swapped > 1:
            raise DataError(f"masked and swapped are shares of one whole, and are {self.masked} + {self.swapped}")

    def level(self, chance: float) -> int:
        """Return the level, a number of LEVELS, that a uniform number from 0, below 1, stands for."""
        ends = np.cumsum([self.levels.get(name, 0.0) for name in LEVELS])
        return int(np.searchsorted(ends, chance * ends[-1], "right"))


@attrs.frozen(eq=False)
class MaskedExamples:
    """Examples with masks that differ from pass to pass: ``PassExamples`` of masked ones.

    Neither special tokens nor unknown words are masked. A random word is any token of the vocabulary but special and
    spare ones. At least one unit of an example is chosen, if anything may be masked. An example gets ``masked``,
    ``originals`` and ``levels``, the kind of each masked token's unit (see ``onion.tasks.pretraining.examples``).

    Attributes:
        samples: unmasked.
        masking: what is masked, and by what.
        tokenizer: has ``[MASK]`` and the vocabulary.
        seed: of the masks.
    """

    samples: PassExamples
    masking: Masking
    tokenizer: Tokenizer
    seed: int
    _special: NDArray[np.bool_] = attrs.field(init=False)
    _words: NDArray[np.int64] = attrs.field(init=False)

    @_special.default
    def _known_special(self) -> NDArray[np.bool_]:
        special = np.zeros(self.tokenizer.vocab_size, bool)
        special[special_ids(self.tokenizer)] = True
        return special

    @_words.default
    def _known_words(self) -> NDArray[np.int64]:
        return word_ids(self.tokenizer)

    @property
    def lengths(self) -> NDArray[np.integer]:
        """Those of the samples, since masks change no length."""
        return self.samples.lengths

    @property
    def fingerprint(self) -> str:
        """Identifies samples and masks."""
        settings = attrs.asdict(self.masking)
        return digest_of_values({"version": VERSION, "of": self.samples.fingerprint, "seed": self.seed, **settings})

    def __len__(self) -> int:
        """The number of examples."""
        return len(self.samples)

    def of_pass(self, pass_id: int) -> Indexed:
        """Return the masked examples of a pass; the same for the same pass."""
        return _MaskedPass(self, self.samples.of_pass(pass_id), pass_id)

    def masked(self, example: Example, draws: Draws) -> Example:
        """Return an example with masks; the example itself stays as it is."""
        ids, flags = example["ids"], example["flags"]
        kinds = kinds_of(flags, self.masking.level(draws.chance("level")))
        chance = draws.chances(len(ids), "unit")[first_of_units(flags, kinds)]
        places = np.flatnonzero(chosen_places(chance, ~self._special[ids], self.masking.share))
        originals = ids[places]
        new = ids.copy()
        new[places] = self._instead(originals, draws)
        return {**example, "ids": new, "masked": places, "originals": originals, "levels": kinds[places]}

    def _instead(self, originals: NDArray[np.int64], draws: Draws) -> NDArray[np.int64]:
        """Return what stands in the place of chosen tokens."""
        fate = draws.chances(len(originals), "fate")
        picked = (draws.chances(len(originals), "word") * len(self._words)).astype(np.int64)
        swapped = fate < self.masking.masked + self.masking.swapped
        found: NDArray[np.int64] = np.where(swapped, self._words[picked], originals)
        found[fate < self.masking.masked] = self.tokenizer.mask_id
        return found


@attrs.frozen(eq=False)
class _MaskedPass:
    """The masked examples of a pass."""

    examples: MaskedExamples
    samples: Indexed
    pass_id: int

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, number: int) -> Example:
        number = range(len(self))[number]
        return self.examples.masked(self.samples[number], Draws.of(self.examples.seed, self.pass_id, number))
