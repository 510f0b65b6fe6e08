"""A saved program of Paddle gives what the encoder gives, for each family, wherever padding stands."""

import numpy as np

from onion.tasks.embedding.pooling import Pooling
from onion.tasks.export.graph import graph_of_encoder, input_names
from onion.tasks.export.paddle_program import write_program
from onion.tasks.export.sessions import ProgramSession
from tests.models.graphs.test_encoders import BOUND, batches, encoder, expected  # noqa: F401  a fixture


def test_a_saved_program_gives_what_the_encoder_gives(encoder, tmp_path):  # noqa: F811
    graph = graph_of_encoder(encoder.config, Pooling("pooler"))
    write_program(tmp_path, graph, encoder, encoder)
    session = ProgramSession(tmp_path, input_names(encoder.config))
    for ids, types, mask in batches(encoder.config):
        given = {"input_ids": ids, "token_type_ids": types, "attention_mask": mask.astype(np.int64)}
        vectors, _ = expected(encoder, ids, types, mask)
        assert np.abs(session(given) - vectors).max() <= BOUND
