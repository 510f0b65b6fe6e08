import pytest

from onion.models.encoder import Encoder
from onion.models.parameter_shapes import shapes_of
from tests.models.helpers import VARIANTS


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_shapes_are_those_of_the_encoders_parameters(variant):
    parameters = dict(Encoder(VARIANTS[variant]).named_parameters())
    assert shapes_of(VARIANTS[variant]) == {name: tuple(parameter.shape) for name, parameter in parameters.items()}
