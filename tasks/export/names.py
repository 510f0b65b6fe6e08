"""The names of formats, engines and files. Nothing is imported: command lines need them."""

ONNX, PADDLE, HUGGINGFACE = "onnx", "paddle", "huggingface"
FORMATS = (ONNX, PADDLE, HUGGINGFACE)

DYNAMIC, STATIC = "dynamic", "static"
EIGHT_BITS = (DYNAMIC, STATIC)
"""How activations get 8 bits: each time by their own range, or by ranges that were measured on a calibration file."""

MANIFEST = "export.json"
ANSWERS = "answers.jsonl"
DECODER = "decoder.safetensors"
MODEL = "model"
ONNX_FILE = f"{MODEL}.onnx"

POOLING_FILE = "pooling.json"
EMBEDDING = "embedding"
"""In the place of a task's name, where an encoder was exported."""

IDS, TYPES, MASK, POSITIONS = "input_ids", "token_type_ids", "attention_mask", "masked_positions"
LOGITS, SENTENCE, TOKENS = "logits", "sentence_embedding", "last_hidden_state"
