"""What tests of checkpoints look at."""


def names(folder):
    """The names of all that is in a folder, in order."""
    return sorted(path.name for path in folder.iterdir())
