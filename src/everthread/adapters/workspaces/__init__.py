"""Workspaces as folders of this machine."""

from __future__ import annotations

from everthread.adapters.workspaces.folders import FolderWorkspaces, TemporaryWorkspaces

__all__ = ["FolderWorkspaces", "TemporaryWorkspaces"]
