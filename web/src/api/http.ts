/** One way over the wire: JSON in and out, the key where one is set, problems as `Problem`. */

const KEY = "everthread.key";
export const API = "/api/v1";

/** What the service refused, in its own words (RFC 9457). */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

export function keptKey(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

export function keepKey(key: string): void {
  localStorage.setItem(KEY, key);
}

type Query = Readonly<Record<string, string | number | boolean | null | undefined>>;

export interface Asked {
  readonly method?: "GET" | "POST" | "PATCH" | "PUT" | "DELETE";
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

export async function ask(path: string, asked: Asked = {}): Promise<Response> {
  const headers: Record<string, string> = { ...asked.headers };
  const key = keptKey();
  if (key !== null) headers["Authorization"] = `Bearer ${key}`;
  const isForm = asked.body instanceof FormData || asked.body instanceof Blob;
  if (asked.body !== undefined && !isForm) headers["Content-Type"] = "application/json";
  const response = await fetch(address(path, asked.query), {
    method: asked.method ?? "GET",
    headers,
    ...(asked.body === undefined ? {} : { body: isForm ? (asked.body as BodyInit) : JSON.stringify(asked.body) }),
    ...(asked.signal === undefined ? {} : { signal: asked.signal }),
  });
  if (!response.ok) throw await problemOf(response);
  return response;
}

async function problemOf(response: Response): Promise<Problem> {
  const body: unknown = await response.json().catch(() => null);
  const told = typeof body === "object" && body !== null ? (body as Record<string, unknown>) : {};
  const message = [told["detail"] ?? told["title"] ?? response.statusText, told["next_step"]].filter(Boolean).join(" ");
  return new Problem(response.status, String(told["code"] ?? response.status), message);
}

export async function askJson<T>(path: string, asked: Asked = {}): Promise<T> {
  const response = await ask(path, asked);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

/** A path with its parts made safe: ids may hold anything. */
export function path(parts: TemplateStringsArray, ...values: readonly (string | number)[]): string {
  return parts.reduce((made, part, index) => made + part + (index < values.length ? encodeURIComponent(values[index]!) : ""), "");
}
