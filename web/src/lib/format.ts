/** Numbers and times as a person of that language reads them. */

export function count(value: number, language: string): string {
  return new Intl.NumberFormat(language).format(value);
}

/** The language as it is spoken where the browser is: British times for a British reader. */
function localeOf(language: string): string {
  return globalThis.navigator?.languages?.find((one) => one.toLowerCase().startsWith(language)) ?? language;
}

/** 1,234 → 1.2k: for places with little room. */
export function brief(value: number, language: string): string {
  return new Intl.NumberFormat(language, { notation: "compact", maximumFractionDigits: 1, useGrouping: "always" }).format(value);
}

/** A day and a time; the time alone for today, the year where it is another. */
export function moment(value: string, language: string, now = new Date()): string {
  const date = new Date(value);
  if (Number.isNaN(date.getTime())) return "";
  const isToday = date.toDateString() === now.toDateString();
  const year = date.getFullYear() === now.getFullYear() ? {} : ({ year: "numeric" } as const);
  const day = isToday ? {} : ({ month: "short", day: "numeric", ...year } as const);
  return new Intl.DateTimeFormat(localeOf(language), { ...day, hour: "numeric", minute: "2-digit" }).format(date);
}

export function seconds(value: number, language: string): string {
  return new Intl.NumberFormat(language, { style: "unit", unit: "second", maximumFractionDigits: value < 1 ? 2 : 1 }).format(value);
}

export function money(value: number, language: string): string {
  return new Intl.NumberFormat(language, { style: "currency", currency: "USD", currencyDisplay: "narrowSymbol" }).format(value);
}

export function bytes(value: number, language: string): string {
  const units = ["B", "kB", "MB", "GB"] as const;
  const step = value > 0 ? Math.min(units.length - 1, Math.floor(Math.log10(value) / 3)) : 0;
  return `${new Intl.NumberFormat(language, { maximumFractionDigits: 1 }).format(value / 1000 ** step)} ${units[step]!}`;
}

/** Arguments of a call in a few words, for the line that unfolds to them. */
export function briefly(json: string): string {
  return firstLine(withoutJson(json), 60);
}

/** What JSON holds, for a line of a list: the values without braces, quotes and names; of calls of tools, each with its name. Any
 * other text as it is. */
export function withoutJson(text: string): string {
  if (text.startsWith("{") || text.startsWith("[")) return valuesOf(text);
  return text.split("\n").map((line) => line.replace(/^([\w.-]+) (\{.*\})$/, (_, name: string, json: string) => `${name} ${valuesOf(json)}`)).join("\n");
}

const KEY = /([{,])\s*"[\w*-]+":\s*/g;

/** The same for a piece of a text, in which JSON may begin or end anywhere, and found words stand between stars. */
export function withoutCutJson(text: string): string {
  if (!/\{"[\w*-]+":/.test(text)) return text;
  return text
    .replace(KEY, (_, before: string) => (before === "{" ? "" : " · "))
    .replace(/["[\]]|\}(?=\s|$)/g, "")
    .replace(/\s+/g, " ")
    .trim();
}

function valuesOf(text: string): string {
  try {
    const given: unknown = JSON.parse(text);
    if (typeof given !== "object" || given === null) return String(given);
    const values = Object.values(given).filter((value) => typeof value !== "boolean" && value !== null);
    return values.map((value) => (typeof value === "string" ? value : JSON.stringify(value))).join(" · ") || text;
  } catch {
    return text;
  }
}

/** The first line of a text, for lists. */
export function firstLine(text: string, most = 80): string {
  const line = text.trim().split("\n", 1)[0] ?? "";
  const letters = [...line];
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : line;
}

/** Sentences one after the other, each once and each with its full stop. */
export function sentences(parts: readonly unknown[]): string {
  const said = parts.filter((part): part is string => typeof part === "string").map((part) => part.trim()).filter((part) => part !== "");
  return [...new Set(said.map((part) => (/[.!?…。！？]["”’)）]?$/.test(part) ? part : `${part}.`)))].join(" ");
}

/** The day alone. */
export function day(value: string, language: string): string {
  const date = new Date(value);
  return Number.isNaN(date.getTime()) ? "" : new Intl.DateTimeFormat(localeOf(language), { dateStyle: "medium" }).format(date);
}
