"""GAN-BERT: a classifier trained on few labels and many texts, against a generator of fake sentences.

After Croce, Castellucci and Basili, "GAN-BERT: Generative Adversarial Learning for Robust Text Classification with a
Bunch of Labeled Examples" (ACL 2020), who took the additional class "fake" from Salimans et al., "Improved Techniques
for Training GANs" (2016). ``examples/gan_bert.py`` composes the training.
"""

from __future__ import annotations

from typing import Any

import paddle
from paddle import nn
from paddle.nn import functional

from onion import RunnerItem, State
from onion.tasks.batches import arguments
from onion.tasks.networks.heads import fresh_linear
from onion.tasks.probabilities import softmax

SLOPE = 0.2
"""Of the LeakyReLU in both networks."""


class Generator(nn.Layer):
    """Generates vectors like those of sentences from noise, with one hidden layer of the same width.

    Args:
        width: of a vector; the encoder's ``hidden_size``.
        noise: random numbers, uniform in [0, 1), per vector. Default 100.
        dropout: of the hidden layer. Default 0.1.
    """

    def __init__(self, width: int, noise: int = 100, dropout: float = 0.1) -> None:
        super().__init__()
        self.noise = noise
        self.layers = nn.Sequential(
            nn.Linear(noise, width), nn.LeakyReLU(SLOPE), nn.Dropout(dropout), nn.Linear(width, width)
        )

    def forward(self, batch: dict[str, Any]) -> paddle.Tensor:
        """Return a vector for each text of the batch, float32 ``[batch, width]``."""
        return self.layers(paddle.rand([len(batch["lengths"]), self.noise]))


class Discriminator(nn.Layer):
    """An encoder with a hidden layer over its pooled output, and logits: one per label, and the last for "fake".

    Args:
        encoder: its config has the width.
        labels: the number of labels.
        dropout: of the vectors and of the hidden layer. Default 0.1.
    """

    def __init__(self, encoder: nn.Layer, labels: int, dropout: float = 0.1) -> None:
        super().__init__()
        width = encoder.config.hidden_size
        self.encoder = encoder
        self.hidden = nn.Sequential(
            nn.Dropout(dropout), fresh_linear(encoder, width), nn.LeakyReLU(SLOPE), nn.Dropout(dropout)
        )
        self.classifier = fresh_linear(encoder, labels + 1)

    def forward(self, batch: dict[str, Any]) -> tuple[paddle.Tensor, paddle.Tensor]:
        """Judge the texts of a batch as made by ``onion.tasks.batches.batch_of``; see :meth:`judge`."""
        return self.judge(self.encoder(**arguments(batch), cls_only=True).pooled_output)

    def judge(self, vectors: paddle.Tensor) -> tuple[paddle.Tensor, paddle.Tensor]:
        """Return the features ``[batch, width]`` and the logits ``[batch, labels + 1]`` of vectors."""
        features = self.hidden(vectors)
        return features, self.classifier(features)

    def loss(self, outputs: tuple[paddle.Tensor, paddle.Tensor], batch: dict[str, Any]) -> paddle.Tensor:
        """Return the loss of the discriminator, a scalar.

        It is the mean cross-entropy of the labels, without "fake"; and, if the batch has ``fakes`` (vectors of a
        generator, float32 ``[any, width]``), also the mean surprisal that texts are real and fakes are not.

        Args:
            outputs: those of :meth:`forward`.
            batch: its ``labels`` (int64, at most ``[batch]``) belong to its first texts; the others have none.
        """
        _, logits = outputs
        labels = batch["labels"]
        loss = functional.cross_entropy(logits[: len(labels), :-1], labels)
        if "fakes" not in batch:
            return loss
        _, of_fakes = self.judge(batch["fakes"])
        return loss - log_real(logits).mean() - log_fake(of_fakes).mean()

    def generator_loss(self, fakes: paddle.Tensor, batch: dict[str, Any]) -> paddle.Tensor:
        """Return the loss of the generator, a scalar.

        It is the mean surprisal that a fake is real, and the mean squared distance between the mean features of fakes
        and texts (feature matching, Salimans et al. 2016, section 3.1).

        Args:
            fakes: the generator's vectors, ``[any, width]``.
            batch: has ``judged``, the discriminator's outputs for the texts (see :meth:`judge`).
        """
        features, logits = self.judge(fakes)
        of_texts, _ = batch["judged"]
        return functional.mse_loss(features.mean(0), of_texts.detach().mean(0)) - log_real(logits).mean()

    def decode(self, outputs: tuple[paddle.Tensor, paddle.Tensor], batch: dict[str, Any]) -> list[Any]:
        """Return the probabilities ``[labels]`` of each text, without "fake"."""
        return list(softmax(outputs[1][:, :-1].numpy()))


class FakeGenerator(RunnerItem):
    """Put fakes into the batch, a dict, as ``fakes``; gradients do not reach the generator.

    Args:
        generator: called with the batch, in its current mode.
    """

    alters_batches = True

    def __init__(self, generator: nn.Layer) -> None:
        self.generator = generator

    def on_batch(self, state: State) -> None:
        """Generate the fakes."""
        with paddle.no_grad():
            state.batch = {**state.batch, "fakes": self.generator(state.batch)}


def log_fake(logits: paddle.Tensor) -> paddle.Tensor:
    """Return the logarithm of the probability of the last class, ``[batch]``."""
    return logits[:, -1] - logits.logsumexp(1)


def log_real(logits: paddle.Tensor) -> paddle.Tensor:
    """Return the logarithm of the probability of all classes but the last, ``[batch]``."""
    return logits[:, :-1].logsumexp(1) - logits.logsumexp(1)
