"""Structured knowledge behind one interface: functions with schemas, answered by a file or a server."""
