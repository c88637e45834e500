// Prints the messages of a session as Anthropic's own SDK reads it: read_claude.mjs SESSION
import { getSessionMessages } from "@anthropic-ai/claude-agent-sdk";

const said = await getSessionMessages(process.argv[2]);
console.log(JSON.stringify(said.map(({ type, message }) => [type, message.content])));
