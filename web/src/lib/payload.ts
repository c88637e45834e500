/** Reading a message of any shape that the log keeps: OpenAI's, Anthropic's blocks, LangChain's. Never throws. */

import type { ToolCall } from "./model";

type Json = Record<string, unknown>;

const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The part of a payload that holds the message's fields: LangChain wraps them. */
export function fieldsOf(payload: unknown): Json {
  if (!isObject(payload)) return {};
  if ("content" in payload) return payload;
  if (isObject(payload["data"])) return payload["data"];
  return isObject(payload["kwargs"]) ? payload["kwargs"] : payload;
}

export function blocksOf(payload: unknown): readonly Json[] {
  const content = fieldsOf(payload)["content"];
  return Array.isArray(content) ? content.filter(isObject) : [];
}

/** The model's reasoning, where the provider gave it. */
export function thinkingOf(payload: unknown): string {
  const own = fieldsOf(payload)["reasoning_content"] ?? nested(payload, "reasoning_content");
  const blocks = blocksOf(payload).flatMap((block) => {
    if (block["type"] === "thinking") return [String(block["thinking"] ?? "")];
    return block["type"] === "reasoning" ? [String(block["reasoning"] ?? block["text"] ?? "")] : [];
  });
  return [typeof own === "string" ? own : "", ...blocks].filter(Boolean).join("\n\n");
}

function nested(payload: unknown, name: string): unknown {
  const more = fieldsOf(payload)["additional_kwargs"];
  return isObject(more) ? more[name] : undefined;
}

export function callsOf(payload: unknown): readonly ToolCall[] {
  const made = fieldsOf(payload)["tool_calls"];
  if (Array.isArray(made) && made.length > 0) return made.filter(isObject).map(callOf);
  return blocksOf(payload)
    .filter((block) => block["type"] === "tool_use")
    .map((block) => ({ id: String(block["id"] ?? ""), name: String(block["name"] ?? ""), arguments: shown(block["input"]) }));
}

function callOf(call: Json): ToolCall {
  const source = isObject(call["function"]) ? call["function"] : call;
  return {
    id: String(call["id"] ?? ""),
    name: String(source["name"] ?? ""),
    arguments: shown(source["arguments"] ?? source["args"]),
  };
}

/** Arguments as a person reads them: JSON with line breaks, or the text as it is. */
export function shown(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value ?? {}, null, 2);
  try {
    return JSON.stringify(JSON.parse(value), null, 2);
  } catch {
    return value;
  }
}

/** Pictures that stand in the message itself. An address elsewhere is never loaded: it would tell its host who reads. */
export function imagesOf(payload: unknown): readonly string[] {
  return blocksOf(payload).flatMap((block) => {
    const url = isObject(block["image_url"]) ? block["image_url"]["url"] : block["image_url"];
    if (typeof url === "string" && /^data:image\/(png|jpeg|gif|webp);base64,/.test(url)) return [url];
    const source = block["source"];
    if (!isObject(source) || source["type"] !== "base64") return [];
    const media = String(source["media_type"] ?? "");
    return /^image\/(png|jpeg|gif|webp)$/.test(media) ? [`data:${media};base64,${String(source["data"] ?? "")}`] : [];
  });
}

/** What came with a message that an export of a chat service only names: "image cat.png". */
export function attachmentsOf(payload: unknown): readonly string[] {
  const files = fieldsOf(payload)["attachments"];
  const named = Array.isArray(files) ? files.filter(isObject) : [];
  const pointers = blocksOf(payload).filter((block) => block["content_type"] === "image_asset_pointer").map((block) => String(block["asset_pointer"]));
  const isOf = (file: Json, pointer: string) => typeof file["id"] === "string" && file["id"] !== "" && pointer.includes(file["id"]);
  const labels = named.map((file) => {
    const media = String(file["mime_type"] ?? file["type"] ?? file["file_type"] ?? "");
    const word = media.startsWith("image") || pointers.some((pointer) => isOf(file, pointer)) ? "image" : "file";
    return `${word} ${String(file["name"] ?? file["file_name"] ?? file["filename"] ?? "")}`.trim();
  });
  return [...labels, ...pointers.filter((pointer) => !named.some((file) => isOf(file, pointer))).map(() => "image")];
}

/** The call that a tool's answer belongs to. */
export function answeredCall(payload: unknown): string | null {
  const id = fieldsOf(payload)["tool_call_id"];
  return typeof id === "string" ? id : null;
}

/** A message of a request as a person reads it: who, the words as they are, what is called, and what else it carries, as JSON. */
export interface RequestBlock {
  readonly role: string;
  /** Of a tool, or of one of several people. */
  readonly name: string | null;
  readonly text: string;
  readonly calls: readonly ToolCall[];
  readonly rest: string;
}

export function blockOf(message: unknown): RequestBlock {
  if (!isObject(message)) return { role: "", name: null, text: "", calls: [], rest: JSON.stringify(message, null, 2) };
  const calls = callsOf(message);
  const { role, content, tool_calls: made, tool_call_id: _answers, name, ...others } = message;
  const isAllSaid = !Array.isArray(made) || made.length === calls.length;
  const rest = isAllSaid ? others : { ...others, tool_calls: made };
  const text = typeof content === "string" ? content : content === null || content === undefined ? "" : JSON.stringify(content, null, 2);
  return { role: String(role ?? ""), name: typeof name === "string" && name !== "" ? name : null, text, calls, rest: Object.keys(rest).length === 0 ? "" : JSON.stringify(rest, null, 2) };
}
