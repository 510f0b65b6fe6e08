"""What tests of checkpoints look at."""


def names(folder):
    return sorted(path.name for path in folder.iterdir())
