"""What asyncpg says when the database is away, or did not take a statement for a reason that passes."""

from __future__ import annotations

import asyncpg

AWAY = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.PostgresConnectionError,
    asyncpg.exceptions.OperatorInterventionError,
    asyncpg.exceptions.InsufficientResourcesError,
    asyncpg.exceptions.PostgresSystemError,  # its disk
    asyncpg.exceptions.IdleInTransactionSessionTimeoutError,
    asyncpg.exceptions.TransactionTimeoutError,
    asyncpg.ReadOnlySQLTransactionError,  # an operator's switch, or a standby: the next connection may lead to the primary
    asyncpg.InternalClientError,  # the server said goodbye while the connection was idle, and the driver lost count
    asyncpg.LockNotAvailableError,
    asyncpg.exceptions.DeadlockDetectedError,  # rolled back for sure, like the next one: it is tried again
    asyncpg.exceptions.SerializationError,
    asyncpg.exceptions.InvalidCachedStatementError,  # a migration changed a table under us: a new connection knows it
)
