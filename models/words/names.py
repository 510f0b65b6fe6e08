"""The names of the encoders of words, and of the ways to split texts. Nothing is imported: command lines need them."""

BOW, CNN, LSTM = "bow", "cnn", "lstm"
KINDS = (BOW, CNN, LSTM)

SPACES, ENGLISH, CHINESE = "spaces", "english", "chinese"
SPLITTINGS = (SPACES, ENGLISH, CHINESE)
