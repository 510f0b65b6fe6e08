"""docs/migrating.md: its tables have every argument of the other libraries, and what they say is run.

tests/peers/ has the arguments with their defaults, as `python -m scripts.peer_arguments` reads them in the sources of
the versions that the files are named after. The first thing in the last cell of a row is what is run: a flag of
`onion train`, another command, or Python about a runner; or it says why there is nothing to run.
"""

import ast
import hashlib
import logging
import re
import shlex

import attrs
import paddle
import pytest
import yaml

import onion
from onion import (
    DataProvider,
    GradientMachine,
    Logger,
    MixedPrecision,
    Runner,
    Saver,
    Tester,
    Tracker,
    schedules,
)
from onion.cli.arguments import parser
from onion.tasks.finetune.config_file import read_config, resolve
from onion.tasks.finetune.declared import declared_in
from onion.tasks.finetune.fine_tune import Job, train
from onion.tasks.finetune.inference import predict_texts
from onion.tasks.finetune.palm_config import GENERAL, IMPLIED, MEANT, OF_TASKS
from onion.tasks.finetune.run_folder import RunFolder
from onion.tasks.finetune.seeding import seed_everything
from onion.tasks.finetune.settings import Settings
from onion.tasks.registry import get_task
from scripts.peer_arguments import arguments
from tests.paths import ROOT
from tests.tasks.helpers import films, tiny_encoder, write_tsv

TEXT = (ROOT / "docs" / "migrating.md").read_text(encoding="utf-8")
FENCED = re.compile(r"^```(.*)\n([\s\S]*?)^```$", re.MULTILINE)
BLOCKS, PROSE = FENCED.findall(TEXT), FENCED.sub("", TEXT)
SPAN = re.compile(r"`([^`]+)`")


def section(heading):
    """Return what is under a heading, up to the next one that is no deeper."""
    level = heading.split()[0]
    return re.split(rf"^#{{1,{len(level)}}} ", PROSE.partition(f"\n{heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


def rows(heading):
    """Return the rows of the tables under a heading: name -> the other cells."""
    lines = re.findall(r"^\| `(\w+)` \|(.*)\|$", section(heading), re.MULTILINE)
    assert len(lines) == len(dict(lines)), "a name has two rows"
    return {name: [cell.strip() for cell in rest.split("|")] for name, rest in lines}


ARGUMENTS, FLAGS, KEYS = rows("## Arguments"), rows("### Trainer flags"), rows("## PaddlePALM")
HERE = {
    f"{name} of {which}": cells[-1]
    for which, table in (("arguments", ARGUMENTS), ("flags", FLAGS))
    for name, cells in table.items()
}


def listed(peer):
    """Return the arguments of another library: name -> default."""
    lines = (ROOT / "tests" / "peers" / f"{peer}.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split(" = ", 1) for line in lines)


# -- complete ----------------------------------------------------------------------------------------------------------


def column(table, number):
    """Return the cells of a column that are not empty: name -> cell."""
    return {name: cells[number] for name, cells in table.items() if cells[number]}


@pytest.mark.parametrize(
    ("peer", "found"),
    [
        ("transformers-5.23.0", {name: cell for name, cell in column(ARGUMENTS, 0).items() if cell[0] == "`"}),
        ("paddlenlp-2.8.1", column(ARGUMENTS, 1)),
        ("lightning-2.6.6", column(FLAGS, 0)),
    ],
)
def test_every_argument_has_its_row_with_its_default(peer, found):
    wanted = {name: f"`{default}`" for name, default in listed(peer).items()}
    assert found == wanted
    (told,) = [line for line in PROSE.splitlines() if line.startswith("- ") and peer.split("-")[1] in line]
    assert re.search(rf"\({len(wanted)}\b", told)


def test_those_of_transformers_4_are_marked():
    older, newer = listed("transformers-4.57.6"), listed("transformers-5.23.0")
    found = {name: cell for name, cell in column(ARGUMENTS, 0).items() if cell.startswith("4: ")}
    assert found == {name: f"4: `{default}`" for name, default in older.items() if name not in newer}
    assert f"4.57.6 has besides ({len(found)})" in TEXT


def test_every_key_of_palm_has_its_row_and_what_is_not_needed_says_so():
    assert KEYS.keys() == {*GENERAL, *OF_TASKS, *MEANT, *IMPLIED}
    assert {key for key, (here,) in KEYS.items() if here.startswith("not needed: ")} == IMPLIED.keys()
    for theirs, ours in {**GENERAL, **OF_TASKS}.items():
        assert KEYS[theirs][0].startswith(f"`{ours}`")


def test_the_lists_are_read_from_sources():
    source = "@dataclass\nclass A:\n    last = 'b'\n    one: int\n    two: str = field(default=last, metadata={})\n"
    assert arguments(f"{source}    three: list = field(default_factory=list)\n    four: float = 1e-8\n", "A") == {
        "one": "required",
        "two": "'b'",
        "three": "list()",
        "four": "1e-08",
    }
    assert arguments("class B:\n    def __init__(self, a, b=1, *, c, d=None): ...", "B") == {
        "a": "required",
        "b": "1",
        "c": "required",
        "d": "None",
    }


# -- true --------------------------------------------------------------------------------------------------------------


def first(cell):
    """Return the code at the beginning of a cell, or nothing."""
    found = SPAN.match(cell)
    return found[1] if found else ""


IN_FLAGS = sorted({first(cell) for cell in HERE.values() if first(cell).startswith("--")})
IN_COMMANDS = sorted(
    {span for cell in HERE.values() for span in SPAN.findall(cell) if re.match(r"onion [\w-]+ .", span)}
)
IN_PYTHON = sorted({first(cell) for cell in HERE.values() if re.match(r"[\w.]+\(", first(cell))})


@pytest.mark.parametrize(("name", "cell"), HERE.items(), ids=list(HERE))
def test_a_row_is_run_or_says_why_not(name, cell):
    code = first(cell)
    assert code in {*IN_FLAGS, *IN_COMMANDS, *IN_PYTHON} if code else re.match(r"(always|not here): \S.{8,}", cell)
    assert {f"{other} of {name.split()[-1]}" for other in re.findall(r"see `(\w+)`", cell)} <= HERE.keys()
    spans = [word.partition("=")[0] for span in SPAN.findall(cell) for word in span.split() if word.startswith("--")]
    known = {flag for command in COMMANDS.values() for flag in command._option_string_actions}
    assert set(spans) <= known


COMMANDS = next(action.choices for action in parser()._actions if isinstance(action.choices, dict))
"""Name of a command -> its parser."""


@pytest.mark.parametrize("command", IN_COMMANDS)
def test_a_command_can_be_parsed(command):
    assert parser().parse_args(shlex.split(command)[1:]).command


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """A command, to which flags are added."""
    folder = tmp_path_factory.mktemp("given")
    files = [write_tsv(folder / f"{name}.tsv", films(64, seed)) for seed, name in enumerate(("train", "dev"))]
    encoder, task = tiny_encoder(folder / "encoder"), "classification"
    flags = {"task": task, "train": files[0], "dev": files[1], "encoder": encoder, "output": folder / "out"}
    flags |= {"passes": 2, "batch_size": 4, "max_length": 16, "warmup_ratio": 0}
    return ["train", *(f"--{name.replace('_', '-')}={value}" for name, value in flags.items())]


def read(words):
    """Return what `onion train` makes of its flags: the options, and the settings."""
    options = parser().parse_args(words)
    flags = {name: value for name, value in vars(options).items() if name in {*declared_in(Settings), "max_length"}}
    return options, resolve({**flags, **dict(options.set)})


@pytest.fixture(scope="module")
def job(given):
    """What is read and made once for all rows."""
    return Job.prepare(read(given)[1])


@pytest.fixture(scope="module")
def beginning(job):
    """The weights before any training."""
    return {path: parameter.numpy().copy() for path, parameter in job.network.state_dict().items()}


@pytest.fixture
def make(job, beginning, tmp_path, monkeypatch):
    """Return the runner of the settings, without the item that holds its folder, and begin from the same weights."""
    monkeypatch.chdir(tmp_path)

    def runner_of(settings):
        job.network.set_state_dict(beginning)
        seed_everything(settings.seed)
        return attrs.evolve(job, settings=settings).onion(tmp_path / "out").without(RunFolder)

    return runner_of


def weights(runner):
    """Return a checksum of what was learned."""
    whole = hashlib.sha256()
    for parameter in runner[GradientMachine].network.parameters():
        whole.update(parameter.numpy().tobytes())
    return whole.hexdigest()


SEEN = {
    "keep_last": lambda runner: runner[Saver].keep_last,
    "log_every": lambda runner: runner[Logger].every,
    "loggers": lambda runner: [item.name for item in runner.all(Tracker)],
    "monitor": lambda runner: runner[Saver].monitor,
    "precision": lambda runner: MixedPrecision in runner and runner[MixedPrecision].dtype,
    "save_every": lambda runner: runner[Saver].every,
    "test_batch_size": lambda runner: runner[Tester].runner[DataProvider].batch_size,
    "test_every": lambda runner: runner[Tester].every,
}
"""Setting -> what is seen of it in its runner; of all others, what was learned."""

WHEN_READ = {"columns", "gradient_checkpointing", "init_from", "options", "stream"}
"""Settings that matter when files are read and the network is made."""

IN_PROCESSES = {"shard_optimizer"}
"""Settings that matter where several processes train, and then change no bit (tests/distributed/test_command.py)."""


@pytest.fixture
def ran(make):
    """Run three steps of a training with the settings; return what is seen of some of them."""

    def see(settings, names):
        runner = make(settings)
        runner.without(Saver).run(steps=3)
        return {name: SEEN.get(name, weights)(runner) for name in names}

    return see


def test_the_same_settings_learn_the_same(given, ran):
    assert ran(read(given)[1], ["seed"]) == ran(read(given)[1], ["seed"])


@pytest.mark.parametrize("flags", IN_FLAGS)
def test_a_flag_takes_effect_in_the_steps_that_are_run(flags, given, ran):
    (usual, settings), (options, changed) = (read([*given, *more]) for more in ([], shlex.split(flags)))
    differing = [name for name, value in changed.as_json().items() if value != settings.as_json()[name]]
    assert differing or options != usual, "the flag gives what the command has without it"
    get_task(changed.task, changed.options)
    if (WHEN_READ | IN_PROCESSES).isdisjoint(differing):
        runner, plain = ran(changed, differing), ran(settings, differing)
        assert [name for name in differing if runner[name] == plain[name]] == []


@pytest.mark.parametrize("code", IN_PYTHON)
def test_python_runs(code, make, job):
    runner = make(job.settings)
    names = {"runner": runner, "network": job.network, "test": runner["dev"].runner}
    modules = {"logging": logging, "paddle": paddle, "schedules": schedules}
    public = {name: getattr(onion, name) for name in onion.__all__}
    device, level = paddle.get_device(), logging.getLogger("onion").level
    try:
        found = eval(code, {**vars(paddle.nn), **vars(paddle.optimizer), **public, **modules, **names})
        assert found != {}, "no metrics"
        if isinstance(found, Runner):
            assert found is not runner
            assert found.run(steps=3).step == 3
    finally:
        paddle.set_device(device)
        logging.getLogger("onion").setLevel(level)


@pytest.mark.parametrize("heading", ["## The Trainer itself", "### Callbacks", "### Hooks of a LightningModule"])
def test_what_stands_in_for_methods_and_hooks_is_there(heading):
    cells = [line.strip("| ").split("|")[-1] for line in section(heading).splitlines() if line.startswith("| `")]
    named = {name for cell in cells for span in SPAN.findall(cell) for name in re.findall(r"^([A-Z]\w+)", span)}
    assert len(cells) > 10
    assert named <= {*onion.__all__, "Predictor"}


# -- the scripts that were moved ---------------------------------------------------------------------------------------


def block(kind, begins):
    """Return the only block of a kind that has a line."""
    (found,) = [text for told, text in BLOCKS if told == kind and begins in text]
    return found


def call(text, name):
    """Return the arguments of the only call of a function, those by position as they are parsed, those by name."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    (found,) = [node for node in calls if ast.unparse(node.func) == name]
    return found.args, {each.arg: ast.literal_eval(each.value) for each in found.keywords}


def settings_by_the_table(names):
    """Return the settings that stand in for arguments, where there are some."""
    flags = [shlex.split(code) for code in (first(ARGUMENTS[name][-1]) for name in names) if code.startswith("--")]
    found = {words[1] if words[0] == "--set" else words[0] for words in flags}
    return {word.partition("=")[0].lstrip("-").replace("-", "_") for word in found} - {"output"}


def test_the_script_of_transformers_is_moved_by_the_table():
    config = yaml.safe_load(block("yaml", "# reviews.yaml"))
    theirs = call(block("python fragment", "TrainingArguments("), "TrainingArguments")[1]
    assert settings_by_the_table(theirs) <= config.keys()
    same = {"per_device_train_batch_size": "batch_size", "num_train_epochs": "passes", "logging_steps": "log_every"}
    same |= {name: name for name in ("learning_rate", "weight_decay", "adam_beta2", "warmup_steps", "seed")}
    assert {ours: float(config[ours]) for ours in same.values()} == {same[name]: theirs[name] for name in same}


def test_the_script_of_paddlenlp_is_moved_by_the_table():
    config = yaml.safe_load(block("yaml", "# ner.yaml"))
    words = shlex.split(block("sh", "run_ner.py"))
    theirs = {word[2:] for word in words if word.startswith("--")} - {"model_name_or_path"}
    assert theirs <= listed("paddlenlp-2.8.1").keys()
    assert settings_by_the_table(theirs) <= config.keys()


def test_file_and_python_are_the_same_settings(tmp_path):
    (tmp_path / "reviews.yaml").write_text(block("yaml", "# reviews.yaml"))
    files, own = call(block("python", "fine_tune("), "fine_tune")
    task, train_file, dev = map(ast.literal_eval, files)
    del own["output"]
    assert resolve(read_config(tmp_path / "reviews.yaml")) == Settings(task=task, train=train_file, dev=dev, **own)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with the files that the page names, and its config files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tests.tasks.helpers.POSITIONS", 128)
    tiny_encoder(tmp_path / "minilm")
    reviews = films(40, seed=1)
    write_tsv(tmp_path / "reviews.tsv", reviews)
    (tmp_path / "reviews.csv").write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in reviews))
    for name in ("train.conll", "dev.conll"):
        (tmp_path / name).write_text("the O\nlovely B-GOOD\nfilm O\n\na O\nwarm B-GOOD\nplot I-GOOD\n\n" * 4)
    for kind, text in BLOCKS:
        if kind == "yaml":
            (tmp_path / text.split()[1]).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("config", "task", "wanted"),
    [("reviews.yaml", None, "label"), ("ner.yaml", None, "tags"), ("config.yaml", "senti", "label")],
)
def test_the_files_of_the_page_train_and_predict(place, config, task, wanted):
    settings = attrs.evolve(resolve(read_config(place / config), {"encoder": "minilm"}), max_steps=3)
    assert train(settings, place / "run").report["step"] == 3
    (prediction,) = predict_texts(place / "run", ["a lovely film"], {}, task)
    assert wanted in prediction
