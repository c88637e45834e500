"""The service: conversations over HTTP, for many users."""

from __future__ import annotations
