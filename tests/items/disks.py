"""Disks for the tests of Saver and Signals."""

from onion.checkpointing.atomic_files import Files


class Watched(Files):
    """A disk that calls its ``change`` before every change."""

    def change(self):
        raise NotImplementedError

    def write(self, file, content):
        self.change()
        super().write(file, content)

    def sync(self, handle):
        self.change()
        super().sync(handle)

    def rename(self, source, target):
        self.change()
        super().rename(source, target)

    def remove(self, folder):
        self.change()
        super().remove(folder)
