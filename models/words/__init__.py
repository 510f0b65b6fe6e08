"""Small encoders of words with embeddings of their own: a bag, a convolution, an LSTM."""
