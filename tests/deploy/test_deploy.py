"""The deployment examples: their manifests are valid, and their commands work on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from agents_tools.persistence.queue import DBOSBackend
from tests.durable.postgres import postgres, why_not
from tests.programs import find
from tests.queue.running import BOUND, call_of, messages_of
from tests.waiting import comes

yaml = pytest.importorskip("yaml")
pytest.importorskip("dbos")

ROOT = Path(__file__).parents[2]
FILES = ROOT / "examples" / "deploy"
PROGRAMS = ("web.py", "worker.py")
SERVICES = {"web": 2, "worker": 3}
DRAIN = 25


def compose() -> dict[str, Any]:
    """Return the services of the Compose file."""
    return yaml.safe_load((FILES / "compose.yaml").read_text())["services"]


def manifests() -> list[dict[str, Any]]:
    """Return the objects of the Kubernetes file."""
    return list(yaml.safe_load_all((FILES / "kubernetes.yaml").read_text()))


def deployments() -> dict[str, dict[str, Any]]:
    """Return the deployments of the Kubernetes file."""
    return {
        one["metadata"]["name"]: one["spec"] for one in manifests() if one["kind"] == "Deployment"
    }


def container(name: str) -> dict[str, Any]:
    """Return the container of a deployment."""
    return deployments()[name]["template"]["spec"]["containers"][0]


# --- the files


def test_the_compose_file_is_valid() -> None:
    """It is checked against the Compose specification."""
    module = pytest.importorskip("compose_spec")
    whole = yaml.safe_load((FILES / "compose.yaml").read_text())  # resolves the anchors
    module.PyCompose.from_yaml(yaml.safe_dump(whole)).validate()


def test_the_kubernetes_objects_are_valid() -> None:
    """They are checked against the schemas of Kubernetes, unknown fields included."""
    module = pytest.importorskip("kubernetes_validate")
    for one in manifests():
        module.validate(one, "1.32", strict=True)


def test_both_files_start_the_same_programs_equally_often() -> None:
    """Readers choose one of the two."""
    for name, count in SERVICES.items():
        service, deployment = compose()[name], deployments()[name]
        assert service["deploy"]["replicas"] == deployment["replicas"] == count
        assert service["command"] == container(name)["command"]


@pytest.mark.parametrize("name", SERVICES)
def test_both_files_set_every_variable_of_the_programs(name: str) -> None:
    """A missing variable stops a container at its start."""
    source = (FILES / f"{name}.py").read_text()
    required = set(re.findall(r'os\.environ\["(\w+)"\]', source))
    assert required
    assert required <= set(compose()[name]["environment"])
    assert required <= {variable["name"] for variable in container(name)["env"]}


def test_no_container_is_killed_before_it_has_drained() -> None:
    """SIGKILL during the drain would lose calls."""
    assert f"drain={DRAIN}.0" in (FILES / "worker.py").read_text()
    assert int(compose()["worker"]["stop_grace_period"].removesuffix("s")) > DRAIN
    pod = deployments()["worker"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] > DRAIN


def test_the_image_contains_the_programs() -> None:
    """The containers start programs that the image copies."""
    copied = re.findall(r"^COPY (.*) \./$", (FILES / "Dockerfile").read_text(), re.MULTILINE)
    assert copied[0].split() == ["studio.py", "web.py", "worker.py"]


# --- the processes


class Containers:
    """The containers as processes of this machine."""

    def __init__(self, folder: Path, **variables: str) -> None:
        self._folder = folder
        self._variables = {
            **{name: value for name, value in os.environ.items() if name != "OPENAI_API_KEY"},
            "PYTHONPATH": str(ROOT),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            **variables,
        }
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, port: int = 8000) -> subprocess.Popen[bytes]:
        """Start a container with the command of the Compose file, on loopback."""
        command: list[str] = [
            {"0.0.0.0": "127.0.0.1", "8000": str(port)}.get(str(word), str(word))  # noqa: S104 - replaced
            for word in compose()[name]["command"]
        ]
        process = subprocess.Popen(command, cwd=self._folder, env=self._variables)  # noqa: S603
        self.running.append(process)
        return process

    def end(self) -> None:
        """Stop all containers."""
        for process in self.running:
            process.terminate()
        for process in self.running:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(5)


@pytest.fixture
def database() -> Iterator[str]:
    """Start PostgreSQL."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with postgres() as url:
        yield url


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of the image."""
    for name in ("studio.py", *PROGRAMS):
        shutil.copy(FILES / name, tmp_path)
    return tmp_path


@pytest.mark.external("postgres")
@pytest.mark.leaves_behind  # the threads of DBOS end in their own time
@pytest.mark.timeout(120)
async def test_three_workers_run_the_calls_and_one_of_them_is_replaced(
    database: str, folder: Path
) -> None:
    """A rolling update stops a worker with SIGTERM; all calls are answered."""
    containers = Containers(folder, DATABASE_URL=database, CONCURRENCY="2")
    try:
        workers = [containers.start("worker") for _ in range(SERVICES["worker"])]
        async with DBOSBackend(database) as queue:
            calls = [
                asyncio.create_task(messages_of(queue, call_of("render", {"scene": f"s{number}"})))
                for number in range(20)
            ]
            await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
            workers[0].terminate()
            containers.start("worker")
            found = await asyncio.wait_for(asyncio.gather(*calls), BOUND)
            assert await asyncio.to_thread(workers[0].wait, BOUND) == 0
    finally:
        await asyncio.to_thread(containers.end)
    assert [one[-1].payload["output"] for one in found] == [f"s{n}.mp4" for n in range(20)]


@pytest.mark.external("postgres", "nginx")
@pytest.mark.timeout(180)
async def test_any_web_worker_shows_a_run_and_records_its_approval(
    database: str, folder: Path
) -> None:
    """Two web workers behind nginx, three queue workers: the whole path of a run."""
    ports = [_free_port() for _ in range(4)]
    async with _fake_model(ports[2]) as model:
        containers = Containers(
            folder,
            DATABASE_URL=database,
            AGENT_MODEL="openai-chat/fake",
            OPENAI_BASE_URL=model,
            OPENAI_API_KEY="fake",
            WEB_TOKEN="a-token-of-the-studio",  # noqa: S106 - of a test
            ALLOWED_HOSTS="studio.example.com",
        )
        try:
            for _ in range(SERVICES["worker"]):
                containers.start("worker")
            for port in ports[:2]:
                containers.start("web", port)
            with _proxy(folder, ports[3], *ports[:2]) as url:
                for port in ports[:2]:
                    await comes(lambda port=port: _listens(port))
                await _direct(url)
        finally:
            await asyncio.to_thread(containers.end)


async def _direct(url: str) -> None:
    """Start a run, approve its call through the proxy, and wait for its end."""
    import httpx

    headers = {"authorization": "Bearer a-token-of-the-studio", "host": "studio.example.com"}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=BOUND) as client:
        begun = await client.post("/runs", json={"input": "Render the harbour.", "run_id": "r1"})
        assert begun.status_code == 200
        assert "frame 3" in begun.text
        for _ in range(4):  # each web worker shows the call that waits
            approvals = (await client.get("/runs/r1")).json()["approvals"]
            assert [one["name"] for one in approvals] == ["publish"]
        approval = (await client.get("/runs/r1")).json()["approvals"][0]
        decision = {"call_id": approval["call_id"], "path": approval["path"], "approve": True}
        answer = await client.post("/runs/r1/approvals", json={"decisions": [decision]})
        assert answer.status_code == 200, answer.text
        for _ in range(4):
            events = (await client.get("/runs/r1/events")).text
            assert "harbour.mp4 is online" in events


@contextlib.contextmanager
def _proxy(folder: Path, port: int, *servers: int) -> Generator[str]:
    """Run nginx with the configuration of the Compose file, on other ports and as this user."""
    text = (FILES / "nginx.conf").read_text()
    upstream = " ".join(f"server 127.0.0.1:{one};" for one in servers)
    text = text.replace("server web:8000;", upstream).replace(
        "listen 8080", f"listen 127.0.0.1:{port}"
    )
    places = "".join(
        f"{kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    text = text.replace("http {", f"http {{\naccess_log off;\n{places}")
    config = folder / "nginx.conf"
    config.write_text(f"daemon off;\npid {folder}/nginx.pid;\n{text}")
    command = [str(find("nginx")), "-p", str(folder), "-c", str(config), "-e", f"{folder}/errors"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:  # noqa: S603
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(10)


@contextlib.asynccontextmanager
async def _fake_model(port: int) -> AsyncGenerator[str]:
    import uvicorn

    from tests.deploy.fake_model import app

    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="critical"))
    serving = asyncio.create_task(server.serve())
    try:
        await comes(lambda: server.started)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.should_exit = True
        await serving


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0
