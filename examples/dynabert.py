"""DynaBERT: one network that is trained in several widths and depths at once, from a classifier of onion train.

python examples/dynabert.py RUN FOLDER --output OUT

FOLDER has the train.tsv and dev.tsv of RUN. First its widths learn from the whole, then its depths from each width; the
same command resumes it. The last line is JSON: the accuracy on dev.tsv in every size.
"""

import argparse
import json
from pathlib import Path

from onion import Forward, GradientMachine, OutputsToBatch, ParameterUpdater, Progress, Runner, RunnerItem, Saver
from onion.device import use_threads
from onion.models.hidden_states import WithHiddenStates
from onion.tasks.compression.depths import Depths
from onion.tasks.compression.importance import Importance
from onion.tasks.compression.widths import Widths
from onion.tasks.data.features.cache import cached_features
from onion.tasks.finetune.predictor import Predictor
from onion.tasks.finetune.recipes import evaluation_onion, training_data
from onion.tasks.finetune.seeding import seed_everything
from onion.tasks.networks.distillation import Distillation, EveryHiddenState
from onion.tasks.networks.output_loss import OutputLoss

# onion comes first, so that it can choose the math library that Paddle loads
# isort: split
import paddle

WIDTHS = [1.0, 0.75, 0.5]  # shares of heads and neurons
parser = argparse.ArgumentParser(usage=__doc__)
parser.add_argument("run", type=Path)
parser.add_argument("folder", type=Path)
parser.add_argument("--output", type=Path, required=True)
parser.add_argument("--passes", type=int, default=1, help="of each of the two trainings")
parser.add_argument("--seed", type=int, default=1)
given = parser.parse_args()
use_threads()
seed_everything(given.seed)
whole, own = Predictor.load(given.run), Predictor.load(given.run)
task, pad_id, teacher, student = own.task, own.tokenizer.pad_id, whole.network, own.network
train, dev = (cached_features(task, str(given.folder / f"{name}.tsv"), own.tokenizer) for name in ("train", "dev"))
layers = student.encoder.config.num_hidden_layers
depths = [layers, layers // 2]


def trained(name: str, hidden: float, *rings: RunnerItem) -> None:
    """Train the student as the rings say, which have its size and its teacher; ``hidden`` weighs hidden states."""
    seed_everything(given.seed)  # so that each of the two begins alike, whether the other one was interrupted or not
    data = training_data(task, train, 32, given.seed, pad_id)
    loss = Distillation(student, teacher, OutputLoss(student), EveryHiddenState(weight=hidden), labels=0)
    machine = GradientMachine(WithHiddenStates(student), loss)
    runner = Runner(Progress(), Saver(given.output / name), data, *rings, machine)
    print(runner)
    runner.run(passes=given.passes)


importance = Importance(student)
Runner(training_data(task, train, 32, given.seed, pad_id), importance, GradientMachine(student)).run(steps=64)
importance.sort()
lesson = Forward(WithHiddenStates(teacher)), OutputsToBatch("teacher")
optimizers = [paddle.optimizer.AdamW(5e-5, parameters=student.parameters()) for _ in range(2)]
trained("widths", 0.1, *lesson, ParameterUpdater(optimizers[0]), Widths(WIDTHS, student))
teacher.set_state_dict(student.state_dict())
sizes_of_both = Widths(WIDTHS, teacher, student), *lesson, Depths(depths, student)
trained("depths", 1.0, ParameterUpdater(optimizers[1]), *sizes_of_both)
sizes = [(width, depth) for width in WIDTHS for depth in depths]
figures = {}
for width, depth in sizes:
    size = Widths([width], student), Depths([depth], student)
    test = evaluation_onion(task, student, dev, task.metric(str(given.folder / "dev.tsv")), pad_id, size)
    figures[f"width {width}, {depth} layers"] = test.run(passes=1).metrics["accuracy"]
print(json.dumps({"example": "dynabert", "seed": given.seed, "passes": given.passes, "accuracy": figures}))
