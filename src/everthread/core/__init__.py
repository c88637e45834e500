"""The nouns, the errors and the ports: what every other room speaks of. Standard library only.

nouns, entries           what callers hold (messages, receipts, hits, reports); one row of the log, with its flags
payloads, ids, clock     reading a message of any shape; ids; the store's time
log, chain, paths        how a log is written (intents), its hash chain, and paths through its branches
ports                    what a store implements; `Store` joins all of them
compactions, memories, documents, notes, items, checkpoints, jobs, turns, turn_events, embeddings, blobs, workspaces,
access, replies          the values of one topic each, and its port where it is not in `ports`
queries, tools, events   a parsed search; tools that users register; what is reported while everything runs
errors                   every error a caller can meet, in one tree
cancellation, failpoints finishing what must be finished; where crash tests may kill a process
"""
