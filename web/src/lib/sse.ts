/** Server-sent events from a fetch, so that a POST can stream and a key can be sent. */

export interface ServerEvent {
  readonly id: string | null;
  readonly event: string;
  readonly data: string;
}

/** Cuts a stream of text into events; keeps what is not whole yet. Comments and `retry` are passed over. */
export class EventCutter {
  private rest = "";

  push(piece: string): ServerEvent[] {
    const whole = this.rest + piece;
    const held = whole.endsWith("\r") ? "\r" : ""; // its line feed may come with the next piece
    const blocks = whole.slice(0, whole.length - held.length).replace(/\r\n?/g, "\n").split("\n\n");
    this.rest = (blocks.pop() ?? "") + held;
    return blocks.map(parsed).filter((event): event is ServerEvent => event !== null);
  }
}

function parsed(block: string): ServerEvent | null {
  let id: string | null = null;
  let event = "message";
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    if (colon <= 0) continue;
    const field = line.slice(0, colon);
    const value = line.slice(colon + 1).replace(/^ /, "");
    if (field === "id") id = value;
    else if (field === "event") event = value;
    else if (field === "data") data.push(value);
  }
  return data.length === 0 ? null : { id, event, data: data.join("\n") };
}

/** `onPiece` hears of every piece, also of the comments that only say that the server is there. */
export async function* eventsOf(body: ReadableStream<Uint8Array>, onPiece: () => void = () => undefined): AsyncGenerator<ServerEvent> {
  const cutter = new EventCutter();
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      onPiece();
      yield* cutter.push(value);
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
