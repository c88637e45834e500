"""`python -m everthread` is the command line."""

from __future__ import annotations

from everthread.cli import main

if __name__ == "__main__":
    main()
