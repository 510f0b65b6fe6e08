"""A redis-server that a test starts and kills."""

import random
import shutil
import socket
import subprocess

REDIS = shutil.which("redis-server")


def free_port():
    """Return a port at which no process listens, and that the system gives to no outgoing connection."""
    ports = list(range(20_000, 30_000))
    random.SystemRandom().shuffle(ports)
    for port in ports:
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)) != 0:
                return port
    raise AssertionError("no free port")


class RedisProcess:
    """Listens at a port of this machine; what it accepts is on disk before it answers."""

    def __init__(self, folder, **settings):
        folder.mkdir(exist_ok=True)
        self.folder, self.process = folder, None
        self.settings = {"appendonly": "yes", "appendfsync": "always", **settings}
        self.port = free_port()

    @property
    def url(self):
        return self.url_with("")

    def url_with(self, password):
        return f"redis://{password and f':{password}@'}127.0.0.1:{self.port}/0"

    def start(self):
        words = {"port": str(self.port), "bind": "127.0.0.1", "save": "", "logfile": "", **self.settings}
        command = [REDIS, *(word for name, value in words.items() for word in (f"--{name}", value))]
        self.process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, text=True)
        said = []
        for line in self.process.stdout:
            said.append(line)
            if "eady to accept" in line:
                return self
        raise AssertionError(f"redis-server has ended: {''.join(said)}")

    def kill(self):
        """Kill it, as a crash would; return whether it was alive."""
        lived = self.process is not None and self.process.poll() is None
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            self.process = None
        return lived

    def __enter__(self):
        return self.start()

    def __exit__(self, *error):
        self.kill()
