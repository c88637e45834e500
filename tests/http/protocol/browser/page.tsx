// One chat, by each of the libraries that pages use; `?server=…&kind=…` says which, and where the server is.
import { AssistantRuntimeProvider, ComposerPrimitive, MessagePrimitive, ThreadPrimitive } from "@assistant-ui/react";
import { unstable_createLangGraphStream, useLangGraphRuntime } from "@assistant-ui/react-langgraph";
import { Client } from "@langchain/langgraph-sdk";
import { useStream as useStreamOfSdk1 } from "@langchain/langgraph-sdk/react";
import { useStream as useStreamOfReact } from "@langchain/react";
import { Client as Client2 } from "langgraph-sdk-2";
import { useStream as useStreamOfSdk2 } from "langgraph-sdk-2/react";
import { type FormEvent, useState } from "react";
import { createRoot } from "react-dom/client";

const query = new URLSearchParams(location.search);
const server = query.get("server")!;

type Message = { id?: string; type?: string; content: unknown };
type Chat = { messages: Message[]; interrupt?: unknown; send: (text: string) => void; answer: (text: string) => void };

/** Content is a text, or blocks that have some. */
const textOf = ({ content }: Message) =>
  typeof content === "string" ? content : (content as { text?: string }[]).map((block) => block.text ?? "").join("");

/** What every page has: the messages, what the graph asks, and a line to type in. */
function Page({ messages, interrupt, send, answer }: Chat) {
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const text = String(new FormData(event.currentTarget).get("text"));
    event.currentTarget.reset();
    (interrupt === undefined ? send : answer)(text);
  };
  return (
    <form onSubmit={submit}>
      <ol>{messages.map((message, index) => <li key={message.id ?? index}>{textOf(message)}</li>)}</ol>
      {interrupt !== undefined && <p role="status">{JSON.stringify(interrupt)}</p>}
      <input name="text" aria-label="text" />
    </form>
  );
}

const human = (content: string) => ({ messages: [{ type: "human", content }] });

function viaSdk(useStream: any) {
  return function Sdk() {
    const stream = useStream({ apiUrl: server, assistantId: "agent", fetchStateHistory: true });
    return (
      <Page
        messages={stream.messages}
        interrupt={stream.interrupt?.value}
        send={(text) => stream.submit(human(text))}
        answer={(text) => stream.submit(undefined, { command: { resume: text } })}
      />
    );
  };
}

function ViaReact() {
  const stream = useStreamOfReact({ apiUrl: server, assistantId: "agent" }) as any;
  return (
    <Page
      messages={stream.messages}
      interrupt={stream.interrupts?.[0]?.value}
      send={(text) => void stream.submit(human(text))}
      answer={(text) => void stream.respond(text)}
    />
  );
}

function viaClient(Made: any) {
  return function ViaClient() {
    const [client] = useState(() => new Made({ apiUrl: server }));
    const [thread, setThread] = useState<string>();
    const [state, setState] = useState<{ messages: Message[]; interrupt?: unknown }>({ messages: [] });
    const run = async (payload: object) => {
      const id = thread ?? (await client.threads.create()).thread_id;
      setThread(id);
      const options = { ...payload, streamMode: ["values", "updates"] };
      for await (const part of client.runs.stream(id, "agent", options)) {
        if (part.event === "values") setState({ messages: part.data.messages });
        if (part.data?.__interrupt__) setState((now) => ({ ...now, interrupt: part.data.__interrupt__[0].value }));
      }
    };
    const send = (text: string) => void run({ input: human(text) });
    const answer = (text: string) => void run({ command: { resume: text } });
    return <Page {...state} send={send} answer={answer} />;
  };
}

function AssistantUi() {
  const client = new Client({ apiUrl: server });
  const runtime = useLangGraphRuntime({
    stream: unstable_createLangGraphStream({ client, assistantId: "agent" }),
    create: async () => ({ externalId: (await client.threads.create()).thread_id }),
    load: async (id) => ({ messages: ((await client.threads.getState(id)).values as any).messages ?? [] }),
  });
  return (
    <AssistantRuntimeProvider runtime={runtime}>
      <ol>
        <ThreadPrimitive.Messages components={{ Message: () => <li><MessagePrimitive.Parts /></li> }} />
      </ol>
      <ComposerPrimitive.Root>
        <ComposerPrimitive.Input aria-label="text" />
      </ComposerPrimitive.Root>
    </AssistantRuntimeProvider>
  );
}

const kinds: Record<string, () => React.JSX.Element> = {
  "client 1": viaClient(Client),
  "client 2": viaClient(Client2),
  "useStream 1": viaSdk(useStreamOfSdk1),
  "useStream 2": viaSdk(useStreamOfSdk2),
  "@langchain/react": ViaReact,
  "assistant-ui": AssistantUi,
};
const Shown = kinds[query.get("kind")!]!;
createRoot(document.getElementById("root")!).render(<Shown />);
