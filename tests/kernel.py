"""A kernel of Jupyter: a process of its own, in which cells run one after the other."""

from contextlib import contextmanager
from dataclasses import dataclass, field

from jupyter_client.manager import KernelManager

from tests.patience import PATIENCE


@dataclass
class Cell:
    """What came of a cell.

    Attributes:
        printed: on standard output.
        warned: on standard error.
        error: the lines of its traceback, or None.
        displayed: what it displayed, each by media type.
    """

    printed: str = ""
    warned: str = ""
    error: list[str] | None = None
    displayed: list[dict[str, object]] = field(default_factory=list)


class Kernel:
    """A running kernel.

    Attributes:
        widgets: the state of every widget that was made, by its id, in the order in which they were made.
    """

    def __init__(self, manager, client):
        self._manager, self._client = manager, client
        self.widgets = {}

    def run(self, code, interrupt_at=None):
        """Run a cell; interrupt the kernel, as the stop button does, when the cell prints a text."""
        cell = Cell()

        def hear(message):
            kind, content = message["msg_type"], message["content"]
            if kind == "stream" and content["name"] == "stdout":
                cell.printed += content["text"]
                if interrupt_at is not None and interrupt_at in content["text"]:
                    self._manager.interrupt_kernel()
            elif kind == "stream":
                cell.warned += content["text"]
            elif kind in ("display_data", "execute_result"):
                cell.displayed.append(content["data"])
            elif kind == "error":
                cell.error = content["traceback"]
            elif kind in ("comm_open", "comm_msg"):
                self.widgets.setdefault(content["comm_id"], {}).update(content["data"].get("state", {}))

        # A kernel that is to stop on errors drops, without a word, a cell that comes just behind one that failed.
        self._client.execute_interactive(code, stop_on_error=False, timeout=PATIENCE, output_hook=hear)
        return cell

    def kind(self, name):
        """Return the states of the widgets of a kind."""
        return [state for state in self.widgets.values() if state.get("_model_name") == name]


@contextmanager
def running_kernel(folder):
    """Start a kernel in a folder; end it afterwards."""
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(cwd=str(folder))
    client = manager.client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=PATIENCE)
        yield Kernel(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
