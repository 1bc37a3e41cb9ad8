"""Calls over connections that are cut, slow, or end."""

import asyncio
import socket
import threading
import unittest

from unstuck_client import LeaseLost, Stopping, UnstuckError
from unstuck_client.aio_connection import AsyncCalls
from unstuck_client.connection import Calls
from unstuck_client.endpoint import Endpoint


class Server:
    """Answers each request on a connection with the next of its answers; None hangs up."""

    def __init__(self, *answers):
        self._answers = list(answers)
        self.requests = []
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        self.endpoint = Endpoint("127.0.0.1", port, "/w1", "secret", None, "a", None)
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self):
        if self._listener.fileno() >= 0:
            # A blocked accept() ends with the shutdown.
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()

    def _serve(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            with connection, connection.makefile("rb") as lines:
                while self._answer(connection, lines):
                    pass

    def _answer(self, connection, lines):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = lines.readline()
            if not line:
                return False
            head += line
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        self.requests.append(head.split(b"\r\n")[0] + b" " + lines.read(length))
        answer = self._answers.pop(0)
        if answer is None:
            return False
        parts = answer if isinstance(answer, tuple) else (answer,)
        for part in parts:
            connection.sendall(part)
        return b"connection: close" not in b"".join(parts)


def reply(body, status=b"200 OK", more=b""):
    return b"HTTP/1.1 %b\r\nContent-Length: %d\r\n%b\r\n%b" % (status, len(body), more, body)


def error(status, code):
    return reply(b'{"error":{"code":"%b","message":"why"}}' % code, status)


class CallsTest(unittest.TestCase):
    def call(self, server, path="/claim", body=b"{}"):
        calls = Calls(server.endpoint)
        try:
            return calls.post(path, body)
        finally:
            calls.close()
            server.close()

    def test_a_call_has_its_path_and_its_body(self):
        server = Server(reply(b'{"n":1}'))
        self.assertEqual(self.call(server, body=b'{"max":2}'), {"n": 1})
        self.assertEqual(server.requests, [b'POST /w1/claim HTTP/1.1 {"max":2}'])

    def test_an_answer_may_come_in_pieces(self):
        whole = reply(b'{"text":"' + b"x" * 200_000 + b'"}')
        pieces = tuple(whole[n : n + 50_000] for n in range(0, len(whole), 50_000))
        server = Server((whole[:9], whole[9:30], whole[30:]), pieces)
        calls = Calls(server.endpoint)
        self.assertEqual(len(calls.post("/a")["text"]), 200_000)
        self.assertEqual(len(calls.post("/a")["text"]), 200_000)
        self.assertEqual(server.connections, 1)
        calls.close()
        server.close()

    def test_a_call_without_an_answer_is_sent_again(self):
        server = Server(None, None, reply(b'{"seq":1}'))
        self.assertEqual(self.call(server, "/checkpoints"), {"seq": 1})
        self.assertEqual(server.connections, 3)
        self.assertEqual(len(set(server.requests)), 1)

    def test_500_and_429_are_sent_again(self):
        server = Server(
            error(b"500 Internal Server Error", b"UNEXPECTED"),
            error(b"429 Too Many Requests", b"TOO_MANY_CALLS"),
            reply(b"{}"),
        )
        self.assertEqual(self.call(server), {})

    def test_500_again_and_again_is_raised(self):
        server = Server(*[error(b"500 Internal Server Error", b"UNEXPECTED")] * 6)
        with self.assertRaises(UnstuckError) as caught:
            self.call(server)
        self.assertEqual(caught.exception.code, "UNEXPECTED")

    def test_other_errors_are_raised_by_their_code(self):
        with self.assertRaises(LeaseLost):
            self.call(Server(error(b"409 Conflict", b"LEASE_LOST")))

    def test_503_and_a_refused_connection_mean_that_unstuck_is_gone(self):
        with self.assertRaises(Stopping):
            self.call(Server(error(b"503 Service Unavailable", b"STOPPING")))
        server = Server()
        server.close()
        with self.assertRaisesRegex(Stopping, "Unstuck has ended"):
            Calls(server.endpoint).post("/claim")

    def test_a_connection_that_the_server_closes_is_opened_again(self):
        server = Server(reply(b"{}", more=b"connection: close\r\n"), reply(b"{}"))
        calls = Calls(server.endpoint)
        calls.post("/a")
        calls.post("/a")
        self.assertEqual(server.connections, 2)
        calls.close()
        server.close()


class AsyncCallsTest(unittest.TestCase):
    def call(self, server):
        async def call():
            calls = AsyncCalls(server.endpoint)
            try:
                return await calls.post("/claim", b"{}")
            finally:
                calls.close()

        try:
            return asyncio.run(call())
        finally:
            server.close()

    def test_a_call_without_an_answer_is_sent_again(self):
        server = Server(None, reply(b'{"seq":1}'))
        self.assertEqual(self.call(server), {"seq": 1})
        self.assertEqual(server.requests, [b"POST /w1/claim HTTP/1.1 {}"] * 2)

    def test_errors_are_the_same(self):
        with self.assertRaises(LeaseLost):
            self.call(Server(error(b"409 Conflict", b"LEASE_LOST")))
        server = Server()
        server.close()
        with self.assertRaisesRegex(Stopping, "Unstuck has ended"):
            self.call(server)


if __name__ == "__main__":
    unittest.main()
