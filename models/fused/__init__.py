"""Fast paths of the encoder's layers: prediction, training with a custom backward pass, flash attention."""
