"""What anything that runs in the background of a request needs: a lease, an event log, followers, an end.

    leases.py      this process as the holder of its runs: heartbeats, and how to tell that another holder is dead
    event_log.py   the numbered events of one run, for its listeners and for the store
    follow.py      a run's events for a reader that comes later, or sits in another process
    close.py       ending the runs of processes that died

The rows are those of `core/turns.py`, and they change by the intents of `history/turn_intents.py`.
"""
