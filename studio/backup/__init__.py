"""Backup and restore of a home: one archive with the databases, vectors and files that cannot be derived."""

from sleuth.studio.backup.archive import Manifest, verify
from sleuth.studio.backup.backup import back_up
from sleuth.studio.backup.restore import restore

__all__ = ["Manifest", "back_up", "restore", "verify"]
