"""The histories of other programs: read, followed, written to the log, and given back.

session         what readers give: sessions and their messages
claude_code, codex, gemini_cli, opencode    readers of coding agents
line_agents, streaming_agents, task_files, agent_databases    readers of more of them, by the shape of their files
session_lines, blocks                       what those share
chat_exports, message_lists                 readers of exports and of lists of messages
detect          which program wrote a file
line_file       a file of JSON lines: its messages in batches, with the bytes of their lines
intents         the intents: where in the log a message goes
write           writes sessions to the log
whole           writes sessions of documents and databases, which have no lines
follow          brings the log up to date with a file that grows, or was rewritten
importer        `everthread import`
watch           `everthread watch`: where the agents keep their sessions, and what changes there
find            finds a conversation by the beginning of its id
session_file    the file of a session, made of its lines in the log
resume          `everthread resume`: sessions as files of their agents
blame           `everthread blame`: the tool calls that named a file
usage           `everthread usage`: the tokens and the cost that agents report
"""
