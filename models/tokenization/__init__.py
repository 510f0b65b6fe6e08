"""How texts become tokens, a file an algorithm; :class:`onion.models.tokenizer.Tokenizer` is the public class.

loading.py, family_files.py     which files of a folder make which tokenizer
vocabulary.py, special_tokens.py               vocab.txt in all its forms; padding, unknown, begin, end, mask
wordpiece.py, byte_bpe.py       BERT's and ERNIE's; RoBERTa's
sentencepiece_model.py          ``spiece.model`` as XLNet has it, read without sentencepiece
sentencepiece.py, sentencepiece_offsets.py, ernie_tiny_dictionary.py    ERNIE tiny's
basic_tokenizer.py, pre_tokenizer.py           characters as the reference tokenizers treat them
word_cache.py                   ids of words that were seen before
validation.py, truncation.py, windows.py, encoding.py    arguments, pairs and texts that are too long, results
"""
