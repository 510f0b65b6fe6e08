"""The examples at the end of each command's help."""

EXAMPLES = {
    "": """
        onion train --task classification --train train.tsv --dev dev.tsv --output run
        onion predict --run run --text "a gripping film"
        onion train --help
    """,
    "train": """
        onion train --task classification --train train.tsv --dev 0.1 --encoder minilm --output run
        onion train --config joint.yaml --passes 5 --output run
        onion tasks classification      # the files and settings of a task
    """,
    "pretrain": """
        onion corpus build wiki.txt --tokenizer vocab --segmenter jieba --output wiki
        onion pretrain --corpus wiki --config small.json --max-steps 10000 --output run
        onion pretrain --corpus wiki --encoder ernie-1.0 --tasks sentence-order --max-steps 5000 --output order
        onion train --task classification --train train.tsv --dev 0.1 --encoder run/encoder --output tuned
    """,
    "distill": """
        onion distill --teacher run --train train.tsv --dev dev.tsv --student bow --output student
        onion distill --teacher run --train train.tsv --unlabelled more.tsv --dev 0.1 --student lstm --output lstm
        onion predict --run student --text "a gripping film"
    """,
    "compress": """
        onion compress --run run --train train.tsv --dev dev.tsv --width 0.5 --output small
        onion compress --run run --train train.tsv --dev 0.1 --width 0.5 --layers 3 --output smaller
        onion export --run small --int8 dynamic --output model
    """,
    "evaluate": """
        onion evaluate --run run --input test.tsv
        onion evaluate --run run --input test.tsv --report report
        onion evaluate --run run --task films --input test.csv --columns text_a=sentence,label=Sentiment
    """,
    "predict": """
        onion predict --run run --text "a gripping film"
        onion predict --run run --input new.csv --carry id,text_a --output predictions.csv
        cat new.txt | onion predict --run run -
    """,
    "export": """
        onion export --run run --output model           # an ONNX file; predicting needs no Paddle then
        onion export --run run --int8 static --calibrate train.txt --output small
        onion export --run run --format paddle --output program
        onion export --encoder minilm --pooling mean --normalize --output vectors
        onion predict --run model --text "a gripping film"
    """,
    "serve": """
        onion serve model
        onion serve films=model vectors --port 8000
        onion serve run --engine onnx --token-file token --host 0.0.0.0
    """,
    "push": """
        onion push ada/film-reviews --run run --license apache-2.0 --language en
        onion push ada/film-reviews --run run --output model      # look at the files first
        onion predict --run ada/film-reviews --text "a gripping film"
    """,
    "tune": """
        onion tune --config task.yaml --search learning_rate=1e-5..1e-4:log --search batch_size=16,32 --output study
        onion train --config study/best.json --output run
    """,
    "cross-validate": """
        onion cross-validate --folds 5 --task classification --train train.tsv --output folds
    """,
    "lr-find": """
        onion lr-find --task classification --train train.tsv --output rates
    """,
    "tasks": """
        onion tasks
        onion tasks token-classification
    """,
    "draw": """
        onion draw --run run
        onion draw --run run --output onion.svg
    """,
    "embed": """
        onion embed --encoder minilm --pooling mean --normalize --input texts.tsv --output vectors
    """,
    "weights": """
        onion weights ls
        onion weights get hfl/chinese-roberta-wwm-ext
    """,
    "corpus": """
        onion corpus build wiki.txt news.jsonl.gz --tokenizer ernie-1.0 --segmenter jieba --output corpus
        onion corpus ls corpus --verify
    """,
    "cache": """
        onion cache ls
        onion cache clear --unused 30
    """,
    "replay": """
        onion replay run --onion my_run:make
    """,
    "ctl": """
        onion ctl status
        onion ctl set learning_rate=0.0001
        onion ctl events
    """,
}
"""Command -> examples; of the program itself under the empty name."""
