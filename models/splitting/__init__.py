"""How texts become tokens, a file an algorithm; :class:`onion.models.tokenizer.Tokenizer` chooses by a folder's files.

vocabulary.py                the forms of vocab.txt
wordpiece.py, byte_bpe.py    BERT's and ERNIE's cuts; RoBERTa's
characters.py                characters that Rust's tables treat otherwise than the references
truncation.py                what is kept of a pair that is too long
"""
