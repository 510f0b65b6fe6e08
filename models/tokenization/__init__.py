"""How texts become tokens, a file an algorithm; :class:`onion.models.tokenizer.Tokenizer` is the door to them.

loading.py                   which files of a folder make which tokenizer
vocabulary.py                the forms of vocab.txt
special.py                   which token plays which part
inputs.py                    what a tokenizer is called with: lists, whole numbers
wordpiece.py, byte_bpe.py    BERT's and ERNIE's cuts; RoBERTa's
sentencepiece_model.py       what a SentencePiece model file holds; XLNet's cut is in models/xlnet/tokenizer.py
family_files.py              the tokenizer file that one family alone has
sentencepieces.py            ERNIE tiny's: words of a dictionary, then SentencePiece
word_dictionary.py           that dictionary and its cut
piece_places.py              where SentencePiece's pieces stand in the text
preparation.py               what is done to texts before Rust gets them: the contract of the next and of the above
characters.py                characters that Rust's tables treat otherwise than the references
words.py                     texts whose words Rust has cut before
truncation.py                what is kept of a pair that is too long
windows.py                   texts that are too long as windows that cover them
encoding.py                  what comes out
"""
