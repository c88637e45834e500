"""What anything that runs in the background of a request needs: a lease, an event log, readers, an end.

    engine.py          begins, follows, stops and ends runs; open it first
    event_log.py       the numbered events of one run, for its readers
    event_writer.py    stores the events of all runs together, before anybody sees them
    stored_events.py   a run's events for a reader that comes later, or sits in another process
    holder.py          this process as the holder of its runs, and how to tell that another holder is dead
    close.py           ends the runs of processes that died

The rows are those of `core/turns.py`, and they change by the intents of `history/turn_intents.py`.
"""
