"""Workspaces: the folders that conversations' tools and uploads live in.

conversation_workspaces.py   what an open database offers: open, clean, erase
folders.py                   one folder for each conversation, with its lease, quota and uploads
no_follow.py                 files below an open folder, reached without following links
mime.py                      what an upload is, by its first bytes
"""

from __future__ import annotations

from everthread.workspaces.folders import FolderWorkspaces, TemporaryWorkspaces

__all__ = ["FolderWorkspaces", "TemporaryWorkspaces"]
