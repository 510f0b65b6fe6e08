"""``onion corpus``: corpora for pretraining."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from onion.cli.commands import answer_signals
from onion.cli.values import natural
from onion.host.thread_count import default_threads
from onion.text_formats import json_text

if TYPE_CHECKING:
    from onion.tasks.pretraining.corpus.manifest import Manifest

COLUMNS = ("TOKENS", "DOCUMENTS", "SENTENCES", "UNKNOWN", "VOCABULARY", "SEGMENTER", "SHARDS", "FOLDER")


def add_actions(command: argparse.ArgumentParser, debug: argparse.ArgumentParser) -> None:
    """Add the actions of the command."""
    actions = command.add_subparsers(required=True, metavar="ACTION")

    def add(name: str, text: str, function: Callable[..., int]) -> Callable[..., Any]:
        action = actions.add_parser(name, help=text, description=text, parents=[debug])
        action.set_defaults(command=function)
        return action.add_argument

    _add_build(add("build", "make a corpus from raw text; the same command goes on with an interrupted one", build))
    _add_ls(add("ls", "list what corpora hold", list_corpora))


def _add_build(add: Callable[..., Any]) -> None:
    texts = ".txt: a paragraph a line, blank lines between documents; .jsonl: objects with text; or either with .gz"
    add("inputs", nargs="+", metavar="INPUT", help=texts)
    tokenizer = "a folder or a known name, as train's --encoder; its files are copied"
    add("--tokenizer", required=True, metavar="NAME|DIR", help=tokenizer)
    words = "what finds words (default: %(default)s, which knows no Chinese words)"
    add("--segmenter", default="tokenizer", choices=["jieba", "tokenizer"], help=words)
    entities = "what finds named entities (default: %(default)s)"
    add("--entities", default="none", choices=["lac", "none"], help=entities)
    dictionary = "words, phrases and entities of your own: lines of ENTRY<TAB>word, phrase or entity"
    add("--dictionary", type=Path, metavar="FILE", help=dictionary)
    add("--language", metavar="CODE", help="language to note in the manifest, such as zh")
    add("--workers", type=natural, metavar="N", help="processes that tokenize (default: one per processor, at most 8)")
    size = "tokens of a shard, after which the next one begins (default: 67108864)"
    add("--shard-tokens", type=natural, metavar="N", help=size)
    add("--output", type=Path, required=True, metavar="DIR", help="folder of the corpus")
    add("--quiet", action="store_true", help="show no progress")


def _add_ls(add: Callable[..., Any]) -> None:
    add("folders", nargs="+", type=Path, metavar="DIR", help="output folders of onion corpus build")
    add("--verify", action="store_true", help="compare all files with their checksums")
    add("--json", action="store_true", help="print a line of JSON for each")


def build(options: argparse.Namespace) -> int:
    """Make a corpus; print one line of JSON."""
    answer_signals()
    from onion.models.tokenizer import Tokenizer
    from onion.tasks.pretraining.corpus.build import SHARD_TOKENS, Build
    from onion.tasks.pretraining.corpus.progress import progress
    from onion.tasks.pretraining.corpus.segmentation.segmenter import SegmenterSettings, make_segmenter

    units = SegmenterSettings(words=options.segmenter, entities=options.entities, dictionary=options.dictionary)
    made = Build(
        inputs=tuple(options.inputs),
        tokenizer=Tokenizer.from_pretrained(options.tokenizer),
        segmenter=make_segmenter(units),
        language=options.language,
        shard_tokens=options.shard_tokens or SHARD_TOKENS,
        workers=options.workers or default_threads(),
    )
    with progress(made.inputs, options.quiet) as told:
        corpus = made.run(options.output, told)
    print(json_text(_record(options.output, corpus.manifest)))
    return 0


def list_corpora(options: argparse.Namespace) -> int:
    """Print a line for each corpus, of JSON if wanted."""
    from onion.tasks.pretraining.corpus.folder import CorpusFolder
    from onion.tasks.pretraining.corpus.manifest import Manifest

    rows: list[tuple[str, ...]] = [COLUMNS]
    for folder in options.folders:
        manifest = Manifest.read(folder)
        corpus = CorpusFolder.open(folder) if manifest.complete else CorpusFolder(folder, manifest, ())
        if options.verify:  # of an unfinished build what it has so far
            corpus.verify()
        if options.json:
            print(json_text(_record(folder, manifest)))
        rows.append(_row(folder, manifest))
    if not options.json:
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            print("  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
    return 0


def _record(folder: Path, manifest: Manifest) -> dict[str, Any]:
    origin = manifest.origin
    return {
        "corpus": str(folder),
        "complete": manifest.complete,
        **attrs.asdict(manifest.counts),
        "vocab_size": origin.vocab_size,
        "segmenter": f"{origin.segmenter} {origin.segmenter_version}",
        "language": origin.language,
        "shards": len(manifest.shards),
        "inputs": [each.name for each in origin.inputs],
    }


def _row(folder: Path, manifest: Manifest) -> tuple[str, ...]:
    counts, origin = manifest.counts, manifest.origin
    shards = f"{len(manifest.shards)}" if manifest.complete else f"{len(manifest.shards)}, build not ended"
    unknown = f"{100 * counts.unknown / max(counts.tokens, 1):.2f} %"
    found = f"{counts.tokens:,}", f"{counts.documents:,}", f"{counts.sentences:,}", unknown, f"{origin.vocab_size:,}"
    return *found, f"{origin.segmenter} {origin.segmenter_version}", shards, str(folder)
