"""The composition root: builds every object of a server once, and takes them down in order.

The only file that knows every room.
"""

import asyncio
import contextlib
import os
import signal
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path

import msgspec
import structlog

from windlass import __version__, assembly, config, limits, logs
from windlass.clock import Clock
from windlass.engine.context import Context, Graces
from windlass.engine.registry import Registry
from windlass.engine.workspace import Workspace
from windlass.errors import Invalid, WindlassError
from windlass.fleet.mailbox.mailroom import Mailroom
from windlass.fleet.pool.lazy_pool import LazyPool
from windlass.fleet.worktree.worktrees import Worktrees
from windlass.guardian.handle import Guardian
from windlass.ids import new_id
from windlass.journal.journal import Journal
from windlass.journal.lock import only_writer
from windlass.journal.sqlite import SqliteBackend
from windlass.journal.writer import ThreadWriter
from windlass.mcp.hub import Hub
from windlass.server.addresses import client_address, page_addresses
from windlass.server.app import create_app
from windlass.server.door import Door
from windlass.server.greeting import asked_with_curl, greeting, page_link
from windlass.server.listener import Listener
from windlass.server.peers import is_own_command
from windlass.server.private_files import private_directory, write_private
from windlass.server.services import Services
from windlass.server.tickets import Tickets
from windlass.server.tokens import TokenStore
from windlass.tools.environment import child_environment
from windlass.tools.files import WorkspaceRoot
from windlass.tools.shell import ShellExecutor
from windlass.wire.execution import Executor, RunSpec
from windlass.wire.http import ModelInfo, ProviderInfo, SelectedModel, WorkspaceConfig
from windlass.wire.worker import WorkerSpec

logger = structlog.get_logger("windlass")


class ServeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What `windlass serve` was asked for."""

    listen: list[str]
    allow_host: list[str] = []
    tls_cert: str | None = None
    tls_key: str | None = None
    data_dir: Path | None = None
    config: Path | None = None
    ready_file: Path | None = None
    exit_when_idle: bool = False
    create_grace: float = limits.CREATE_GRACE_SECONDS
    detach_grace: float = limits.DETACH_GRACE_SECONDS
    linger: float = limits.LINGER_SECONDS
    drain: float = limits.DRAIN_SECONDS


def serve(options: ServeOptions) -> int:
    """Run a server until it is told to leave; returns the process's exit code."""
    logs.configure(os.environ.get("WINDLASS_LOG", ""), os.environ.get("WINDLASS_LOG_SHOWN", ""))
    # The thread that commits gives the interpreter away with every statement. At the usual five milliseconds until it
    # has it back, a cancel would take a quarter of a second to be durable when the loop is busy.
    sys.setswitchinterval(limits.THREAD_SWITCH_SECONDS)
    try:
        import uvloop

        runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    except ImportError:  # where uvloop is not to be had, the standard loop serves
        runner = asyncio.Runner()
    try:
        with runner:
            return runner.run(Server(options).run())
    except WindlassError as error:
        print(f"windlass: {error.message}", file=sys.stderr)
        return 1
    finally:
        logs.close()


class Server:
    """One server process, from its data directory's lock to its last flush."""

    def __init__(self, options: ServeOptions) -> None:
        self._options = options
        self._data_dir = options.data_dir or config.default_data_dir()
        self._leave = asyncio.Event()
        self._poison = ""
        self._terminal = sys.stderr.isatty()
        self._config = config.load(options.config)
        sockets = (address.removeprefix("unix:") for address in options.listen if address.startswith("unix:"))
        self._protected = assembly.protected_paths(
            self._data_dir, options.config, options.ready_file, options.tls_key, *sockets
        )
        self._certificate = ""
        self._ports: tuple[int, ...] = ()
        self._linger: asyncio.TimerHandle | None = None
        self._background: set[asyncio.Task[None]] = set()

    async def run(self) -> int:
        private_directory(self._data_dir)
        with only_writer(self._data_dir):
            logs.keep_in(self._data_dir)  # not before the lock: a second server must not write into the first one's log
            async with self._journal() as journal, self._guardian() as self._spawner, self._fleet():
                await self._serve(journal)
        if self._poison:
            print(f"windlass: the journal could not be written: {self._poison}", file=sys.stderr)
            return 1
        return 0

    # -- building -----------------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def _journal(self) -> AsyncIterator[Journal]:
        backend = SqliteBackend(self._data_dir / "journal.db", self._config.journal.sync)
        journal = Journal(ThreadWriter(backend), Clock(), self._on_poison)
        try:
            yield journal
        finally:
            await journal.close()

    @contextlib.asynccontextmanager
    async def _guardian(self) -> AsyncIterator[Guardian]:
        # Its process is started with the first command: a server that runs none needs none, and nobody waits for it.
        guardian = Guardian()
        try:
            yield guardian
        finally:
            await guardian.aclose()

    @contextlib.asynccontextmanager
    async def _fleet(self) -> AsyncIterator[None]:
        """What executes runs: agents in this process, and a pool of workers for those that are placed elsewhere."""
        self._assembly = assembly.Assembly(self._ready_spawner)
        self._pool = LazyPool(self._spawner, child_environment(dict(os.environ)))
        self._mcp = Hub(self._spawner, child_environment(dict(os.environ)), assembly.mcp_servers(self._config))
        try:
            yield
        finally:
            await self._mcp.aclose()
            await self._pool.aclose()
            await self._assembly.aclose()

    async def _ready_spawner(self) -> Guardian:
        return self._spawner

    def _on_poison(self, reason: str) -> None:
        """The disk refused: leave at once, saying why. A restart finds everything that was acknowledged."""
        logger.critical("journal poisoned", reason=reason)
        self._poison = reason
        self._leave.set()

    async def _serve(self, journal: Journal) -> None:
        options = self._options
        unattended = limits.UNATTENDED_DENY_SECONDS if options.exit_when_idle else None
        graces = Graces(options.create_grace, options.detach_grace, unattended)
        environment = child_environment(dict(os.environ))
        worktrees = self._data_dir.with_name(f"{self._data_dir.name}-worktrees")  # beside: no tool may work inside it
        context = Context(
            journal,
            journal.clock,
            self._config,
            self._executor,
            graces,
            new_id,
            mailroom=Mailroom(self._data_dir / "agents"),
            worktrees=Worktrees(self._spawner, worktrees, environment),
            open_root=WorkspaceRoot,
            mcp=self._mcp.open,
            let_go=self._assembly.let_go,
        )
        registry = Registry(context, str(self._data_dir), self._on_idle)
        self._registry = registry
        self._check_models(self._config)
        tokens = TokenStore(self._data_dir)
        secret = tokens.first()
        services = Services(
            registry, tokens, Tickets(tokens, journal.clock), self._describe, self._reload, self._leave_if_idle
        )
        app = create_app(services)
        listeners = self._listeners(app, tokens)
        try:
            for listener in listeners:
                listener.bind()  # before any run goes on: a start that fails must not begin what it cannot finish
            self._ports = tuple(listener.port for listener in listeners if listener.port)
            await registry.recover()
            urls = [await listener.start() for listener in listeners]
            services.addresses = page_addresses(urls, self._options.allow_host)
        except BaseException:
            for listener in listeners:
                listener.close_unused()
            await registry.drain(0.0)
            raise
        self._catch_signals()
        self._announce(urls, secret, services)
        logger.info("server started", version=__version__, pid=os.getpid(), urls=urls, model=self._config.model)
        self._keep(self._watch_tokens(tokens))
        self._keep(self._trim(journal))
        self._on_idle()
        await self._leave.wait()
        logger.info("server leaves", pid=os.getpid())
        await self._stop(listeners)

    def _listeners(self, app: object, tokens: TokenStore) -> list[Listener]:
        tls = self._tls()
        listeners = []
        for address in self._options.listen:
            unix = address.startswith("unix:")
            door = Door(app, tokens, self._options.allow_host, trusted=unix)
            listeners.append(Listener(address, door, None if unix else tls, self._is_own_command if unix else None))
        return listeners

    def _is_own_command(self, connection: socket.socket) -> bool:
        return is_own_command(connection, self._spawner.pid)

    def _tls(self) -> ssl.SSLContext | None:
        if self._options.tls_cert is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self._options.tls_cert, self._options.tls_key)
        except (OSError, ssl.SSLError) as error:
            raise Invalid(f"The TLS certificate cannot be used: {error}.") from None
        # For clients on this machine, who need no authority: the first certificate is ours, others vouch for it.
        chain = Path(self._options.tls_cert).read_text("utf-8", "replace")
        self._certificate = chain[chain.find(_BEGIN) : chain.find(_END) + len(_END)] + "\n"
        return context

    # -- the agent ----------------------------------------------------------------------------------------------------

    def _executor(self, workspace: Workspace, settings: config.Config, spec: RunSpec) -> Executor:
        """What executes one run, with the config that this run keeps: an agent here, or one in a worker process.

        A person's own command is run here, wherever agents are placed.
        """
        if spec.purpose == "shell":
            return ShellExecutor(self._spawner, child_environment(dict(os.environ)), lambda: new_id("msg"))
        agent = msgspec.structs.replace(
            assembly.agent_spec(settings, spec), protected_paths=self._protected, protected_ports=self._ports
        )
        placement = settings.agents.placement if spec.roles else settings.runs.placement
        if placement == "local":
            return self._assembly.executor(agent)
        identity = f"agent {spec.roles[-1]}" if spec.roles else "agent"
        # No directory: each run says its own, so that a warm worker serves any workspace.
        worker = WorkerSpec("", "agent", identity, agent=agent)
        return self._pool.executor(worker, depth=len(spec.roles))

    def _check_models(self, settings: config.Config) -> None:
        """A model that cannot work is said at the start, not in the middle of the first run."""
        name = settings.model.partition("/")[0]
        self._assembly.model(assembly.provider_spec(name, settings.providers[name]))

    def _describe(self) -> WorkspaceConfig:
        """What clients are told of the configuration: no key, no address, no path of ours."""
        settings = self._registry.context.config
        large = _selected(settings.model)
        small = _selected(settings.small_model or settings.model)
        providers = {
            name: ProviderInfo(
                id=name,
                name=name,
                type=provider.type,
                models=[
                    ModelInfo(model.id, model.name, model.context_window, model.default_max_tokens)
                    for model in assembly.model_profiles(settings, name)
                ],
            )
            for name, provider in settings.providers.items()
        }
        return WorkspaceConfig({"large": large, "small": small}, providers, {"data_directory": ""}, {})

    def _reload(self) -> None:
        """Read the config again; a file that is wrong changes nothing."""
        try:
            settings = config.load(self._options.config)
        except config.ConfigError as error:
            raise Invalid(f"The configuration was not changed: {error}") from None
        self._check_models(settings)
        self._registry.context.config = settings
        self._mcp.configure(assembly.mcp_servers(settings))

    # -- the server's life --------------------------------------------------------------------------------------------

    def _catch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._told_to_leave)
        loop.add_signal_handler(signal.SIGHUP, self._reload_on_signal)

    def _told_to_leave(self) -> None:
        """Leave; told a second time, do not wait for runs any longer."""
        if self._leave.is_set():
            self._registry.hurry()
            return
        busy = sum(workspace.is_busy for workspace in self._registry.workspaces)
        if busy:
            wait = f"giving running work {self._options.drain:g} s (again: stop now)"
            print(f"Stopping; {wait}. Queued prompts stay queued.", file=sys.stderr, flush=True)
        self._leave.set()

    def _reload_on_signal(self) -> None:
        if self._terminal and not sys.stderr.isatty():
            self._leave.set()  # the terminal we were started in was closed: that is what this signal said first
            return
        try:
            self._reload()
        except WindlassError as error:
            logger.error("config not reloaded", reason=error.message)

    def _announce(self, urls: list[str], secret: str, services: Services) -> None:
        """Write where we are, then say it: a file that is there means that connections are accepted."""
        url = client_address(urls[0], self._options.allow_host)
        ready = {"url": url, "token": secret, "pid": os.getpid()}
        if self._certificate:
            ready["certificate"] = self._certificate
        content = msgspec.json.encode(ready)
        write_private(self._data_dir / "server.json", content)
        if self._options.ready_file is not None:
            write_private(self._options.ready_file, content)
        page = page_link(services) if sys.stdout.isatty() else ""
        curl = asked_with_curl(urls, self._options.allow_host, self._options.tls_cert)
        token_file = self._data_dir / "token"
        print(greeting(urls, curl, self._config.model, token_file, self._options.data_dir, page), flush=True)

    def _on_idle(self) -> None:
        """A server that follows its clients leaves some time after the last one, unless another comes."""
        if not self._options.exit_when_idle:
            return
        if self._linger is not None:
            self._linger.cancel()  # it counts from the last client, not from an earlier time without any
        loop = asyncio.get_running_loop()
        seconds = self._options.linger
        if not self._registry.had_clients:
            seconds += self._options.create_grace  # nobody came yet: give them the time to
        self._linger = loop.call_later(seconds, self._lingered)

    def _lingered(self) -> None:
        self._linger = None
        if self._registry.leave_if_idle():
            self._leave.set()

    def _leave_if_idle(self) -> bool:
        """The control route: both of its commands mean "if idle"."""
        if not self._options.exit_when_idle or not self._registry.leave_if_idle():
            return False
        self._leave.set()
        return True

    def _keep(self, work: Coroutine[None, None, None]) -> None:
        self._background.add(asyncio.create_task(work))

    async def _watch_tokens(self, tokens: TokenStore) -> None:
        """A token that was revoked by the command line is out within a second, also on streams that are open (A10)."""
        seen = tokens.version
        while True:
            await asyncio.sleep(0.5)
            try:
                tokens.refresh()
            except (OSError, WindlassError) as error:
                logger.error("tokens cannot be read", reason=str(error))
            if tokens.version != seen:
                seen = tokens.version
                for workspace in self._registry.workspaces:
                    workspace.log.wake()

    async def _trim(self, journal: Journal) -> None:
        while True:
            rules = self._registry.context.config.journal
            try:
                await journal.trim(rules.retention_days, rules.retention_mb * limits.MIB)
            except Exception as error:  # the border of this task: one bad trim must not be the last
                logger.error("the log could not be trimmed", exc_info=error)
            await asyncio.sleep(limits.RETENTION_SECONDS)

    async def _stop(self, listeners: list[Listener]) -> None:
        """Take no more, end runs, close streams, let answers out (B35)."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        if self._linger is not None:
            self._linger.cancel()
        for listener in listeners:
            listener.refuse_new()
        await self._registry.drain(0.0 if self._poison else self._options.drain)
        for listener in listeners:
            await listener.stop(STOP_SECONDS)
        (self._data_dir / "server.json").unlink(missing_ok=True)
        if self._options.ready_file is not None:
            self._options.ready_file.unlink(missing_ok=True)


STOP_SECONDS = 5.0  # what answers under way are given at the end


_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


def _selected(model: str) -> SelectedModel:
    provider, _, name = model.partition("/")
    return SelectedModel(model=name, provider=provider)
