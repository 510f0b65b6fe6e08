"""A hub of models on this machine, which speaks the protocol of Hugging Face's.

Source of the protocol: what huggingface_hub 0.26 to 2.4 asks for, sends, and reads of the answers. Large files are
answered with a redirect to another host, as the hub does to its store, and uploaded by Git LFS (not by Xet).
"""

import base64
import hashlib
import json
import sys
from contextlib import contextmanager
from urllib.parse import unquote, urlsplit

import attrs
import pytest

from tests.models.file_server import Handler, Published, Server, serving, without_proxies

LARGE = (".safetensors", ".bin", ".pdparams")

# huggingface_hub 2.4 uploads a large file in a way that its HTTP library calls deprecated.
UPLOADS = pytest.mark.filterwarnings("ignore:Use 'content=<...>' to upload:DeprecationWarning")


@attrs.define
class Repository:
    """A repository of one branch and its older commits.

    Attributes:
        files: name -> content.
        gated: whether nobody may read it; private: whether the token is needed.
        older: commit or branch -> its files.
        messages: of the commits that were uploaded.
    """

    files: dict
    gated: bool = False
    private: bool = False
    older: dict = attrs.field(factory=dict)
    messages: list = attrs.field(factory=list)

    @property
    def commit(self):
        return commit_of(self.files)

    def update(self, **files):
        """Make a new commit of the branch."""
        self.older[self.commit] = self.files
        self.files = {**self.files, **files}

    def at(self, revision):
        """Return commit and files of a revision; None: there is no such one."""
        named = {"main": self.files, **self.older}
        files = {**named, **{commit_of(each): each for each in named.values()}}.get(revision)
        return None if files is None else (commit_of(files), files)

    def take(self, revision, files):
        """Add files to a branch."""
        if revision == "main":
            self.update(**files)
        else:
            self.older[revision] = {**self.older[revision], **files}


def commit_of(files):
    return hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()


class HubHandler(Handler):
    """Takes uploads, too."""

    def do_POST(self):  # noqa: N802
        self.server.requests.append(self.path)
        self.respond(self.server.receive(self.path, self.headers, self.body()))

    def body(self):
        if "Content-Length" in self.headers:
            return self.rfile.read(int(self.headers["Content-Length"]))
        pieces = []
        while size := int(self.rfile.readline(), 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    do_PUT = do_POST  # noqa: N815


class HubServer(Server):
    """Attributes besides those of Server: repositories, name -> Repository; token, the one that is valid; reader, one
    that may not write; owner, whose repositories the token may write; down, whether every answer is an error of the
    server; changing, whether others always commit first.
    """

    handler = HubHandler
    token, reader, owner = "hf_right", "hf_reader", "ada"

    def __init__(self):
        super().__init__()
        self.repositories, self.down, self.changing = {}, False, False

    def clear(self):
        """Be as new."""
        for each in (self.files, self.requests, self.repositories):
            each.clear()
        self.down = self.changing = False

    def find(self, path, headers):
        if self.down:
            return refusal(503)
        token = headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in ("", self.token, self.reader):
            return refusal(401, message="Invalid credentials in Authorization header")
        if path in self.files:
            return self.files[path]
        parts = unquote(urlsplit(path).path).strip("/").split("/")
        if parts[:2] == ["api", "models"]:
            return self.listing("/".join(parts[2:4]), token, *parts[4:6])
        return self.file("/".join(parts[:2]), token, parts[3], "/".join(parts[4:]))

    def listing(self, name, token, what="", revision="main"):
        found = self.at(name, token, revision)
        if isinstance(found, Published):
            return found
        commit, files = found
        if what == "tree":
            return answer([tree_entry(name, content) for name, content in files.items()])
        told = {"id": name, "modelId": name, "sha": commit, "private": False, "tags": [], "downloads": 0}
        return answer({**told, "likes": 0, "siblings": [{"rfilename": name} for name in files]})

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

    def receive(self, path, headers, body):
        """Take an upload; return the answer."""
        if self.down:
            return refusal(503)
        path = unquote(urlsplit(path).path)
        if path.startswith("/store/"):
            digest = hashlib.sha256(body).hexdigest()
            self.files[path] = Published(body, {"ETag": f'"{digest}"'})
            return Published() if path.endswith(digest) else refusal(400)
        token = headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in (self.token, self.reader):
            return refusal(401, message="Invalid username or password.")
        if path == "/api/validate-yaml":
            wrong = b"license: none-such" in json.loads(body)["content"].encode()
            errors = [{"message": '"license" must be one of [apache-2.0, mit]'}] if wrong else []
            return answer({"errors": errors, "warnings": []}, 400 if wrong else 200)
        if path == "/api/repos/create":
            asked = json.loads(body)
            return self.create(f"{asked['organization']}/{asked['name']}", asked, token)
        parts = path.removeprefix("/api/models/").strip("/").split("/")
        name = "/".join(parts[:2]).removesuffix(".git")
        if not self.may_write(name, token):
            return refusal(403, message="You don't have the rights to write here")
        what, revision = ("lfs", "") if path.endswith("/info/lfs/objects/batch") else (parts[2], "/".join(parts[3:]))
        return getattr(self, f"take_{what}")(self.repositories[name], revision, body)

    def may_write(self, name, token):
        return token == self.token and name.partition("/")[0] == self.owner

    def create(self, name, asked, token):
        url = {"url": f"{self.address}/{name}"}
        if not self.may_write(name, token):
            return refusal(403, message="You don't have the rights to create a model under this namespace")
        if name in self.repositories:
            return answer({**url, "error": "You already created this model repo"}, 409)
        private = asked.get("private", False) or asked.get("visibility") == "private"
        self.repositories[name] = Repository({".gitattributes": b""}, private=private)
        return answer(url)

    def take_branch(self, repository, branch, body):
        if branch in repository.older or branch == "main":
            return refusal(409)
        repository.older[branch] = dict(repository.files)
        return answer({})

    def take_preupload(self, repository, revision, body):
        files = [
            {"path": path, "uploadMode": "lfs" if path.endswith(LARGE) else "regular", "shouldIgnore": False}
            for path in (file["path"] for file in json.loads(body)["files"])
        ]
        return answer({"files": files})

    def take_lfs(self, repository, revision, body):
        objects = [
            {**each, "actions": {"upload": {"href": f"{self.address}/store/{each['oid']}"}}}
            for each in json.loads(body)["objects"]
        ]
        return answer({"transfer": "basic", "objects": objects})

    def take_commit(self, repository, revision, body):
        if self.changing:
            return refusal(412, message="A commit has happened since. Please refresh and try again.")
        files = {}
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            if line["key"] == "header":
                repository.messages.append(value["summary"])
            elif line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            else:
                files[value["path"]] = self.files[f"/store/{value['oid']}"].content
        repository.take(revision, files)
        commit, _ = repository.at(revision)
        return answer(
            {"success": True, "commitUrl": f"{self.address}/{self.owner}/any/commit/{commit}", "commitOid": commit}
        )

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


def answer(value, status=200):
    return Published(json.dumps(value).encode(), {"Content-Type": "application/json"}, status=status)


def refusal(status, code=None, message=None):
    return Published(statuses=[status], headers={"X-Error-Code": code, "X-Error-Message": message})


@contextmanager
def serving_hub(cache):
    """Serve a hub, and have huggingface_hub use it in this process and those that it starts."""
    settings = {"HF_HOME": str(cache), "HF_HUB_DISABLE_XET": "1"}
    with serving(HubServer) as server, library_with(HF_ENDPOINT=server.address, **settings) as environment:
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
