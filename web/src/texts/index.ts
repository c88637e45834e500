/** The language of the page: the browser's, until a person switches. */

import { createContext, useContext } from "react";

import { en, type Texts } from "./en";
import { zh } from "./zh";

export type Language = "en" | "zh";
const TEXTS: Record<Language, Texts> = { en, zh };

export function firstLanguage(kept: string | null, browser: readonly string[]): Language {
  if (kept === "en" || kept === "zh") return kept;
  return browser[0]?.toLowerCase().startsWith("zh") === true ? "zh" : "en";
}

interface Tongue {
  readonly language: Language;
  readonly t: Texts;
  readonly change: (language: Language) => void;
}

export const TongueContext = createContext<Tongue>({ language: "en", t: en, change: () => undefined });

export function tongue(language: Language, change: Tongue["change"]): Tongue {
  return { language, t: TEXTS[language], change };
}

export function useTexts(): Tongue {
  return useContext(TongueContext);
}
