"""A hub of models on this machine, which speaks the protocol of Hugging Face's.

Source of the protocol: what huggingface_hub 0.26 to 2.4 asks for and reads of the answers. Large files are answered
with a redirect to another host, as the hub does to its store.
"""

import hashlib
import json
import sys
from contextlib import contextmanager
from urllib.parse import unquote, urlsplit

import attrs
import pytest

from tests.models.file_server import Published, Server, serving, without_proxies

LARGE = (".safetensors", ".bin", ".pdparams")


@attrs.define
class Repository:
    """A repository of one branch and its older commits.

    Attributes:
        files: name -> content.
        gated: whether nobody may read it; private: whether the token is needed.
    """

    files: dict
    gated: bool = False
    private: bool = False
    older: dict = attrs.field(factory=dict)

    @property
    def commit(self):
        return hashlib.sha1(repr(sorted(self.files.items())).encode()).hexdigest()

    def update(self, **files):
        """Make a new commit of the branch."""
        self.older[self.commit] = self.files
        self.files = {**self.files, **files}

    def at(self, revision):
        """Return commit and files of a revision; None: there is no such one."""
        if revision in ("main", self.commit):
            return self.commit, self.files
        return (revision, self.older[revision]) if revision in self.older else None


class HubServer(Server):
    """Attributes besides those of Server: repositories, name -> Repository; token, the one that is valid; down, whether
    every answer is an error of the server.
    """

    token = "hf_right"

    def __init__(self):
        super().__init__()
        self.repositories, self.down = {}, False

    def clear(self):
        """Be as new."""
        for each in (self.files, self.requests, self.repositories):
            each.clear()
        self.down = False

    def find(self, path, headers):
        if self.down:
            return refusal(503)
        token = headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in ("", self.token):
            return refusal(401, message="Invalid credentials in Authorization header")
        if path in self.files:
            return self.files[path]
        parts = unquote(urlsplit(path).path).strip("/").split("/")
        if parts[:2] == ["api", "models"]:
            return self.listing("/".join(parts[2:4]), token, *parts[4:6])
        return self.file("/".join(parts[:2]), token, parts[3], "/".join(parts[4:]))

    def listing(self, name, token, what, revision):
        found = self.at(name, token, revision)
        if isinstance(found, Published):
            return found
        commit, files = found
        if what == "tree":
            answer = [tree_entry(name, content) for name, content in files.items()]
        else:
            answer = {"id": name, "modelId": name, "sha": commit, "private": False, "tags": [], "downloads": 0}
            answer |= {"likes": 0, "siblings": [{"rfilename": name} for name in files]}
        return Published(json.dumps(answer).encode(), {"Content-Type": "application/json"})

    def file(self, name, token, revision, file):
        found = self.at(name, token, revision)
        if isinstance(found, Published):
            return found
        commit, files = found
        if file not in files:
            return refusal(404, "EntryNotFound")
        content = files[file]
        headers = {"X-Repo-Commit": commit, "ETag": f'"{git_digest(content)}"'}
        if not file.endswith(LARGE):
            return Published(content, headers)
        digest = hashlib.sha256(content).hexdigest()
        self.files.setdefault(f"/store/{digest}", Published(content, {"ETag": f'"{digest}"'}))
        headers |= {"X-Linked-Size": len(content), "X-Linked-ETag": f'"{digest}"'}
        store = self.address.replace("127.0.0.1", "localhost")  # another host: there nobody follows it with a HEAD
        return Published(redirect=f"{store}/store/{digest}", headers=headers)

    def at(self, name, token, revision):
        """Commit and files of a revision, or the answer that refuses it."""
        repository = self.repositories.get(name)
        if repository is None or (repository.private and not token):
            return refusal(404 if token else 401, "RepoNotFound", "Repository not found")
        if repository.gated:
            return refusal(403 if token else 401, "GatedRepo", f"Access to model {name} is restricted")
        return repository.at(revision) or refusal(404, "RevisionNotFound", f"Invalid rev id: {revision}")

    def fetched(self):
        """Names of the files that were asked for, each once."""
        return {path.rpartition("/")[2] for path in self.requests if "/resolve/" in path}


def tree_entry(name, content):
    entry = {"type": "file", "path": name, "size": len(content), "oid": git_digest(content)}
    if name.endswith(LARGE):
        entry["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 100}
    return entry


def git_digest(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def refusal(status, code=None, message=None):
    return Published(statuses=[status], headers={"X-Error-Code": code, "X-Error-Message": message})


@contextmanager
def serving_hub(cache):
    """Serve a hub, and have huggingface_hub use it in this process and those that it starts."""
    with serving(HubServer) as server, library_with(HF_ENDPOINT=server.address, HF_HOME=str(cache)) as environment:
        without_proxies(environment)
        for name in ("HF_TOKEN", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
            environment.delenv(name, raising=False)
        yield server


@contextmanager
def library_with(**settings):
    """Have huggingface_hub imported again, with other settings: it reads the environment when it is imported."""
    before = take_modules()
    try:
        with pytest.MonkeyPatch.context() as environment:
            for name, value in settings.items():
                environment.setenv(name, value)
            yield environment
    finally:
        take_modules()
        sys.modules.update(before)


def take_modules():
    names = [name for name in sys.modules if name.partition(".")[0] == "huggingface_hub"]
    return {name: sys.modules.pop(name) for name in names}
