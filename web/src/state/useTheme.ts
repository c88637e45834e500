import { useCallback, useEffect, useState } from "react";

const NAME = "everthread.theme";

/** Light or dark: the system's, until a person switches. Gives the switch. */
export function useTheme(): () => void {
  const [theme, setTheme] = useState(() => kept() ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
  useEffect(() => {
    document.documentElement.dataset["theme"] = theme;
  }, [theme]);
  return useCallback(() => {
    setTheme((now) => {
      const next = now === "dark" ? "light" : "dark";
      localStorage.setItem(NAME, next);
      return next;
    });
  }, []);
}

function kept(): string | null {
  try {
    return localStorage.getItem(NAME);
  } catch {
    return null;
  }
}
