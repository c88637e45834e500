"""The full history: how messages come in, what may be written to a log, and how it is read, searched, exported and
verified. Everything here works on the ports of core/ports.py, never on a particular store.

ingest               a message as the caller has it becomes bytes to store; `made_ids` names messages without an id,
                     `json_values` writes what JSON has no word for
intents              what may be written to a log (Append, Edit, ...); `entry_writer` gives each entry its seq and hash.
                     To add a kind of write, add an intent here; stores need no change
turn_intents         the same for turns (BeginTurn, FinishTurn, StopTurn, ...)
branch_writer        follows a framework's message list into the log; `stubs` recognises its stand-ins for large results
read                 messages along a path, entries and conversations, page by page; `payload_json` decodes stored bytes
search               ranks what a store finds by words; `search_query` parses the query, `snippets` cuts the excerpts
full_history         the log merged with what only a checkpoint has
framework_summaries  summaries that frameworks wrote into their own state, shown as compactions
titles               the title of an untitled conversation
export               Markdown, HTML, JSON and JSON Lines. To add a format, add it to `Format` and `export` there, and to
                     `Format` in http/v1/exports.py
archive              the one export that keeps everything; `import_archive` checks it and reads it back
verify               re-hashes every entry and follows every chain; `blob_check` compares the blob store with the log
erase_vectors        continues an erase in a vector store outside of the database
arguments            checks of arguments that several modules share
"""
