"""A running `windlass` that a test can read from, type to and wait for."""

import asyncio

from windlass.testing import canary


class Program:
    """A running `windlass`. Its output is collected as it comes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.out = ""
        self.err = ""
        sources = {"out": process.stdout, "err": process.stderr}
        self._readers = [
            asyncio.create_task(self._collect(source, name)) for name, source in sources.items() if source is not None
        ]

    async def _collect(self, source: asyncio.StreamReader, name: str) -> None:
        while chunk := await source.read(65536):
            setattr(self, name, getattr(self, name) + chunk.decode())

    def type(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())

    async def says(self, words: str, times: int = 1) -> None:
        """Return when the words have been printed, on either stream."""
        try:
            async with asyncio.timeout(20):
                while (self.out + self.err).count(words) < times:
                    assert self.process.returncode is None or not all(reader.done() for reader in self._readers), (
                        f"it ended without saying {words!r}\n{self.out}\n{self.err}"
                    )
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise AssertionError(f"it did not say {words!r}\n{self.out}\n{self.err}") from None

    async def ended(self) -> int:
        async with asyncio.timeout(20):
            await asyncio.gather(*self._readers)
            canary.check_text(self.out + self.err, "what the program printed")
            return await self.process.wait()

    async def stop(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.ended()
