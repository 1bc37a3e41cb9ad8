"""A driver by DB-API on libpq, with as much as the tests need: no driver is installed for them."""

import ctypes
import os

_pq = ctypes.CDLL(os.environ["LIBPQ"])
for name, result in {
    "PQconnectdb": ctypes.c_void_p,
    "PQexecParams": ctypes.c_void_p,
    "PQerrorMessage": ctypes.c_char_p,
    "PQresultErrorField": ctypes.c_char_p,
    "PQgetvalue": ctypes.c_char_p,
}.items():
    getattr(_pq, name).restype = result

_COMMAND_OK, _TUPLES_OK = 1, 2
_SQLSTATE = ord("C")


class DatabaseError(Exception):
    def __init__(self, message, sqlstate):
        super().__init__(message)
        self.sqlstate = sqlstate


class Connection:
    """A connection that begins a transaction with its first statement."""

    def __init__(self, url):
        self.autocommit = False
        self._connection = ctypes.c_void_p(_pq.PQconnectdb(url.encode()))
        self._is_open = False
        if _pq.PQstatus(self._connection) != 0:
            raise DatabaseError(self._message(), None)

    def cursor(self):
        return Cursor(self)

    def commit(self):
        self._end("COMMIT")

    def rollback(self):
        self._end("ROLLBACK")

    def close(self):
        _pq.PQfinish(self._connection)

    def execute(self, statement, parameters):
        if not self._is_open:
            self._send("BEGIN", ())
            self._is_open = True
        return self._send(statement, parameters)

    def _end(self, statement):
        if self._is_open:
            self._is_open = False
            self._send(statement, ())

    def _send(self, statement, parameters):
        for n in range(len(parameters)):
            statement = statement.replace("%s", f"${n + 1}", 1)
        values = [None if one is None else str(one).encode() for one in parameters]
        array = (ctypes.c_char_p * max(1, len(values)))(*values)
        result = ctypes.c_void_p(
            _pq.PQexecParams(
                self._connection, statement.encode(), len(values), None, array, None, None, 0
            )
        )
        try:
            if _pq.PQresultStatus(result) not in (_COMMAND_OK, _TUPLES_OK):
                state = _pq.PQresultErrorField(result, _SQLSTATE)
                raise DatabaseError(self._message(), state and state.decode())
            columns = range(_pq.PQnfields(result))
            return [
                tuple(_pq.PQgetvalue(result, row, column).decode() for column in columns)
                for row in range(_pq.PQntuples(result))
            ]
        finally:
            _pq.PQclear(result)

    def _message(self):
        return _pq.PQerrorMessage(self._connection).decode().strip()


class Cursor:
    def __init__(self, connection):
        self._connection = connection
        self._rows = []

    def execute(self, statement, parameters=()):
        self._rows = self._connection.execute(statement, parameters)

    def fetchall(self):
        return self._rows


class AsyncConnection(Connection):
    """The same as psycopg's AsyncConnection, as far as its calls are asynchronous."""

    def cursor(self):
        return AsyncCursor(self)

    async def commit(self):
        self._end("COMMIT")

    async def rollback(self):
        self._end("ROLLBACK")


class AsyncCursor(Cursor):
    async def execute(self, statement, parameters=()):
        self._rows = self._connection.execute(statement, parameters)
