"""Writers for the item Tracker: thin adapters of the clients of TensorBoard, VisualDL, Weights & Biases and MLflow."""
