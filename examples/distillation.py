"""A fine-tuned MiniLM (6 layers) teaches a student of 2 of its layers; beside it, the same student learns alone.

python examples/distillation.py FOLDER --role teacher --output TEACHER    # or any onion train --task classification
python examples/distillation.py FOLDER --role student --output OUT --teacher TEACHER
python examples/distillation.py FOLDER --role alone --output OUT

FOLDER has the train.tsv and dev.tsv of a classification, such as SST-2. The same command resumes an interrupted run;
onion evaluate and onion predict read OUT. The last line is JSON: the accuracy on dev.tsv, the examples predicted per
second, and more.
"""

import argparse
import json
from pathlib import Path
from time import perf_counter

from onion import Forward, GradientMachine, OutputsToBatch, ParameterUpdater, Runner
from onion.device import use_threads
from onion.models.hidden_states import WithHiddenStates
from onion.tasks.finetune.fine_tune import fine_tune
from onion.tasks.finetune.inference import evaluate
from onion.tasks.finetune.predictor import Predictor
from onion.tasks.networks import distillation
from onion.tasks.networks.distillation import AttentionDistribution, Distillation, HiddenStatesLoss, SoftTargets

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
from paddle import nn

LAYERS = [1, 2]  # of the encoder; the student starts with copies of them
LOSSES = SoftTargets(temperature=2.0), HiddenStatesLoss({1: 3, 2: 6}), AttentionDistribution({2: 6})
SETTINGS = {"passes": 1, "batch_size": 32}
RATES = {"teacher": 5e-5, "student": 1e-4, "alone": 1e-4}


def taught(runner: Runner, teacher: nn.Layer) -> Runner:
    """Return a fine-tuning with a teacher in it; its outputs go into the batch, where the student's loss finds them."""
    student = runner[GradientMachine].network
    machine = GradientMachine(WithHiddenStates(student), Distillation(student, teacher, *LOSSES))
    lesson = Forward(WithHiddenStates(teacher)), OutputsToBatch("teacher")
    return runner.insert_before(ParameterUpdater, *lesson).replace(GradientMachine, machine)


parser = argparse.ArgumentParser(usage=__doc__)
parser.add_argument("folder", type=Path)
parser.add_argument("--role", choices=RATES, required=True)
parser.add_argument("--output", type=Path, required=True)
parser.add_argument("--teacher", type=Path)
parser.add_argument("--encoder", default="minilm")
parser.add_argument("--seed", type=int, default=1)
given = parser.parse_args()
if (given.role == "student") != (given.teacher is not None):
    parser.error("--role student needs --teacher; the other roles do not take it")
begun = perf_counter()
use_threads()
train, dev, begin = str(given.folder / "train.tsv"), str(given.folder / "dev.tsv"), given.encoder
if given.role != "teacher":
    begin = str(given.output / "begin")
    distillation.write_smaller(given.encoder, LAYERS, begin)
settings = {**SETTINGS, "learning_rate": RATES[given.role], "seed": given.seed}
teacher = given.teacher and Predictor.load(given.teacher)
task = teacher.task if teacher else "classification"  # a student has its teacher's labels, in the same order
runner = fine_tune(task, train, dev, given.output, encoder=begin, **settings)
runner = taught(runner, teacher.network) if teacher else runner
print(runner)
runner.run(passes=SETTINGS["passes"])
seconds, network = round(perf_counter() - begun, 1), runner[GradientMachine].network
figures, tested = evaluate(given.output, dev), perf_counter()
runner["dev"].runner.run(passes=1)
report = {
    "accuracy": figures["accuracy"],
    "examples_per_second": round(figures["rows"] / (perf_counter() - tested), 1),
    "parameters": sum(int(parameter.size) for parameter in network.parameters()),
    "seconds": seconds,
    "encoder": given.encoder,
    "layers": network.encoder.config.num_hidden_layers,
    "losses": [repr(loss) for loss in LOSSES] if teacher else [],
}
print(json.dumps({"example": "distillation", "role": given.role, **settings, **report}))
