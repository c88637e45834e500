/** One way over the wire: operations by the names of the OpenAPI, the key where one is set, problems as `Problem`. */

import { currentKey } from "../state/accounts";
import { sentences } from "../lib/format";
import { reportLost } from "../state/connection";
import { reportRefused } from "../state/entry";
import type { paths } from "./schema";

export const API = "/api/v1";

/** What the service refused, in its own words (RFC 9457); with the status 0, that nobody was there to refuse it. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    /** Whether the same request may succeed later. */
    readonly isRetryable: boolean,
  ) {
    super(message);
  }
}

const GATEWAY_STATUSES = [502, 503, 504];
/** Codes of a server that is on its way down, or not yet up. */
const AWAY_CODES: readonly unknown[] = ["stopping", "not_ready"];

type Query = Readonly<Record<string, string | number | boolean | null | undefined>>;

interface Asked {
  readonly method: string;
  readonly query?: Query;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export function address(path: string, query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined);
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `${API}${path}${search === "" ? "" : `?${search}`}`;
}

async function ask(path: string, asked: Asked): Promise<Response> {
  const headers: Record<string, string> = { ...asked.headers };
  const key = currentKey();
  if (key !== null) headers["Authorization"] = `Bearer ${key}`;
  const isForm = asked.body instanceof FormData || asked.body instanceof Blob;
  if (asked.body !== undefined && !isForm) headers["Content-Type"] = "application/json";
  const response = await reached(address(path, asked.query), {
    method: asked.method,
    headers,
    ...(asked.body === undefined ? {} : { body: isForm ? (asked.body as BodyInit) : JSON.stringify(asked.body) }),
    ...(asked.signal === undefined ? {} : { signal: asked.signal }),
  });
  if (response.ok) return response;
  if (response.status === 401) reportRefused(key);
  throw await problemOf(response);
}

/** Whose key it is; a `Problem` with the status 401 where it is nobody's. */
export async function whoseKey(key: string): Promise<string> {
  const response = await reached(address("/about"), { headers: { Authorization: `Bearer ${key}` } });
  if (!response.ok) throw await problemOf(response);
  return ((await response.json()) as { owner: string }).owner;
}

async function reached(url: string, options: RequestInit): Promise<Response> {
  try {
    return await fetch(url, options);
  } catch (problem) {
    if (options.signal?.aborted === true) throw problem;
    reportLost();
    throw new Problem(0, "unreachable", "The server cannot be reached.", true);
  }
}

async function problemOf(response: Response): Promise<Problem> {
  const body: unknown = await response.json().catch(() => null);
  const told = typeof body === "object" && body !== null ? (body as Record<string, unknown>) : {};
  const message = sentences([told["detail"] ?? told["title"] ?? response.statusText, told["next_step"]]);
  const isOurs = told["code"] !== undefined;
  const isAway = isOurs ? AWAY_CODES.includes(told["code"]) : GATEWAY_STATUSES.includes(response.status); // a proxy answers for it
  if (isAway) reportLost();
  return new Problem(response.status, String(told["code"] ?? response.status), message, isOurs ? told["retryable"] === true : response.status >= 500);
}

type Method = "get" | "post" | "put" | "patch" | "delete";
/** The addresses that know this method. */
type Named<M extends Method> = { [P in keyof paths]: paths[P][M] extends object ? P : never }[keyof paths];
type Of<O, K extends string> = K extends keyof O ? Exclude<O[K], undefined> : never;
type Json<O> = Of<Of<O, "content">, "application/json">;
type Answer<O> = O extends { responses: infer R } ? { [S in keyof R]: Json<R[S]> }[keyof R] : never;

export interface Sent<O> {
  readonly at?: Of<Of<O, "parameters">, "path">;
  readonly query?: Of<Of<O, "parameters">, "query">;
  readonly body?: Json<Of<O, "requestBody">> | FormData | Blob;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** Ask for an operation by its name in the service's OpenAPI: what is sent and what comes back are typed by it. */
export async function call<M extends Method, P extends Named<M>>(method: M, name: P, sent: Sent<paths[P][M]> = {}): Promise<Answer<paths[P][M]>> {
  return (await (await open(method, name, sent)).json()) as Answer<paths[P][M]>;
}

/** The same, for what answers with a file or a stream. */
export function open<M extends Method, P extends Named<M>>(method: M, name: P, sent: Sent<paths[P][M]> = {}): Promise<Response> {
  const { at, query, body, headers, signal } = sent;
  return ask(placed(name, at ?? {}), {
    method: method.toUpperCase(),
    ...(query === undefined ? {} : { query: query as Query }),
    ...(body === undefined ? {} : { body }),
    ...(headers === undefined ? {} : { headers }),
    ...(signal === undefined ? {} : { signal }),
  });
}

/** A path with its parts made safe: ids may hold anything; of a file's path the slashes stay. */
export function placed(name: string, at: object): string {
  const given = new Map(Object.entries(at).map(([part, value]) => [part, String(value)]));
  return name.replace(/\{(\w+)\}/g, (_, part: string) => {
    const value = given.get(part) ?? "";
    return part === "path" ? value.split("/").map(encodeURIComponent).join("/") : encodeURIComponent(value);
  });
}
