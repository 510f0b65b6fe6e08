"""ERNIE 1.0's pretraining on its own gz lines: masked words and next sentence, beside what counting reaches.

python examples/ernie_lines.py TRAIN.gz VALID.gz --output OUT

The masks are ERNIE's own, number for number. The files are those that ERNIE 1.0 is published with (PaddlePaddle/ERNIE,
tag static_graph: demo_train_set.gz and demo_valid_set.gz), or others of their form in the vocabulary of ERNIE 1.0. The
same command resumes an interrupted training. The last line is JSON: accuracies on VALID.gz, beside those of counting.
"""

import argparse
import json
from pathlib import Path

from onion import DataProvider, Evaluator, Forward, GradientMachine, ParameterUpdater, Progress, Runner, Saver, Tester
from onion.device import use_threads
from onion.models import hub
from onion.models.config import EncoderConfig
from onion.models.encoder import Encoder
from onion.models.pretraining_heads import WordPrediction
from onion.models.tokenizer import Tokenizer
from onion.schedules import Passes, linear_warmup_and_decay
from onion.tasks.collector import Decoder
from onion.tasks.finetune.clipping import ClipGradByGlobalNorm
from onion.tasks.finetune.seeding import seed_everything
from onion.tasks.pretraining.corpus.ernie_examples import ErnieExamples
from onion.tasks.pretraining.masking.ernie import ErnieMasker, Vocabulary
from onion.tasks.pretraining.metric import PretrainingMetric
from onion.tasks.pretraining.networks import PretrainingNetwork
from onion.tasks.pretraining.tasks.next_sentence import NextSentence

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle

parser = argparse.ArgumentParser(usage=__doc__)
parser.add_argument("train", type=Path)
parser.add_argument("valid", type=Path)
parser.add_argument("--output", type=Path, required=True)
parser.add_argument("--passes", type=int, default=10)
parser.add_argument("--tokens", type=int, default=2048, help="of a batch, at most")
parser.add_argument("--rate", type=float, default=1e-3, help="the highest learning rate")
parser.add_argument("--hidden", type=int, default=256, help="size of the encoder of 4 layers")
parser.add_argument("--seed", type=int, default=1)
given = parser.parse_args()
use_threads()
seed_everything(given.seed)
tokenizer = Tokenizer.from_pretrained(hub.resolve("wiki-zh"))  # which has the vocabulary of ERNIE 1.0
words = Vocabulary(18000, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id)  # ids of ERNIE's, some without a token
train, valid = (ErnieExamples.read([path], vocab_size=words.size) for path in (given.train, given.valid))
config = EncoderConfig(
    model_type="ernie",
    vocab_size=words.size,
    hidden_size=given.hidden,
    num_hidden_layers=4,
    num_attention_heads=4,
    intermediate_size=4 * given.hidden,
    max_position_embeddings=513,
    hidden_act="relu",
)
network = PretrainingNetwork(Encoder(config), WordPrediction(config), classes=2)
task = NextSentence()
test = Runner(
    DataProvider(valid.examples, 64, collate=list),
    ErnieMasker(words, given.seed),
    Evaluator(PretrainingMetric(task.classes)),
    Decoder(network),
    Forward(network),
)
order = {"tokens_per_batch": given.tokens, "lengths": train.lengths, "shuffle": True, "seed": given.seed}
data = DataProvider(train, **order, collate=list)
schedule = linear_warmup_and_decay(given.rate, Passes(given.passes))
clip = ClipGradByGlobalNorm(1.0)
optimizer = paddle.optimizer.AdamW(schedule, parameters=network.parameters(), weight_decay=0.01, grad_clip=clip)
inside = data, ErnieMasker(words, given.seed), ParameterUpdater(optimizer), GradientMachine(network)
runner = Runner(Progress(), Saver(given.output, every="pass"), Tester(test, every="pass", name="valid"), *inside)
print(runner)
found = dict(runner.run(passes=given.passes).metrics)
beside = {f"baseline.{name}": each for name, each in task.baseline(train.examples, valid.examples).items()}
print(json.dumps({"example": "ernie_lines", "passes": given.passes, **found, **beside}))
