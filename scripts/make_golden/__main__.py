"""Make the golden files of the tests; see the package for the arguments."""

import importlib
import sys

MAKERS = {
    "encoders": "encoders:random",
    "minilm": "encoders:minilm",
    "sentences": "encoders:sentences",
    "tokenizers": "tokenizers:main",
    "merges": "tokenizers:learn_merges",
    "ernie_tiny": "ernie_tiny:main",
    "xlnet_train": "xlnet_tokenizer:train",
    "xlnet_expect": "xlnet_tokenizer:expect",
}

if __name__ == "__main__":
    module, function = MAKERS[sys.argv[1]].split(":")
    getattr(importlib.import_module(f"scripts.make_golden.{module}"), function)(*sys.argv[2:])
