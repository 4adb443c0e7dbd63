"""A TCP proxy between one worker and the broker, whose network can be cut.

Started by run.py. Silent: connections stay and nothing passes, as when a cable is out; what was sent
meanwhile arrives when the cut is over. Reset: connections end at once and new ones are turned away.
"""
import asyncio
import threading

OPEN, SILENT, RESET = "open", "silent", "reset"


class Proxy:
    def __init__(self):
        self.target, self.state, self.port = None, OPEN, None
        self.writers = set()
        self.loop = asyncio.new_event_loop()
        ready = threading.Event()
        self.thread = threading.Thread(target=self.run, args=(ready,), daemon=True)
        self.thread.start()
        ready.wait()

    def run(self, ready):
        asyncio.set_event_loop(self.loop)
        self.passing = asyncio.Event()
        self.passing.set()
        self.server = self.loop.run_until_complete(asyncio.start_server(self.serve, "127.0.0.1", 0))
        self.port = self.server.sockets[0].getsockname()[1]
        ready.set()
        self.loop.run_forever()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    async def serve(self, reader, writer):
        self.writers.add(writer)
        far = None
        try:
            await self.passing.wait()
            if self.state == RESET:
                return
            host, port = self.target.rsplit(":", 1)
            far_reader, far = await asyncio.open_connection(host, int(port))
            self.writers.add(far)
            ways = [asyncio.ensure_future(self.carry(reader, far)), asyncio.ensure_future(self.carry(far_reader, writer))]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
        except OSError:
            pass
        finally:
            for one in (writer, far):
                if one is not None:
                    self.writers.discard(one)
                    one.transport.abort()

    async def carry(self, reader, writer):
        try:
            while True:
                data = await reader.read(65536)
                await self.passing.wait()
                if not data:
                    return
                writer.write(data)
                await writer.drain()
        except OSError:
            return

    def set(self, state):
        self.loop.call_soon_threadsafe(self.become, state)

    def become(self, state):
        self.state = state
        if state == SILENT:
            self.passing.clear()
        else:
            self.passing.set()
        if state == RESET:
            for writer in list(self.writers):
                writer.transport.abort()

    def close(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(5)
