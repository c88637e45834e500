// npm run build && npm run show -- http://localhost:2024 <thread id>

import { Client } from "@langchain/langgraph-sdk";

import { loadFullHistory } from "./history.js";

const [apiUrl, threadId] = process.argv.slice(2);
const client = new Client({ apiUrl, apiKey: "a-key", callerOptions: { maxRetries: 0 } });
const history = await loadFullHistory(client, threadId);
console.log(JSON.stringify(history));
