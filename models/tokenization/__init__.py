"""Tokenization algorithms, one per file; :class:`onion.models.tokenizer.Tokenizer` is the public class.

loading.py                      which files of a folder make which tokenizer
vocabulary.py                   vocab.txt in all its forms; padding, unknown, begin, end, mask
wordpiece.py, byte_bpe.py       BERT's and ERNIE's; RoBERTa's
sentencepiece_model.py          ``spiece.model`` as XLNet has it, read without sentencepiece
sentencepiece.py, ernie_tiny_dictionary.py     ERNIE tiny's
basic_tokenizer.py              characters as the reference tokenizers treat them
pre_tokenizer.py                checks of the arguments; preparation for the library
word_cache.py                   ids of known words
windows.py, encoding.py         truncation and windows of long texts; results
"""
