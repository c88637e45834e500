import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode, useEffect, useMemo, useState } from "react";
import { createRoot } from "react-dom/client";

import { Problem } from "./api/http";
import { renew } from "./api/queries";
import { App } from "./App";
import { Toasts } from "./components/Bits";
import { isConnected, onConnection } from "./state/connection";
import "@fontsource-variable/noto-sans-sc"; // fetched, slice by slice, only where the system has no font for Chinese
import "./styles.css";
import { firstLanguage, tongue, TongueContext, type Language } from "./texts";

const LANGUAGE = "everthread.language";

const cache = new QueryClient({
  defaultOptions: {
    // "always": whether the server is there is for us to find out, a browser without a network may well reach it.
    queries: { networkMode: "always", retry: (failures, problem) => !(problem instanceof Problem && problem.status < 500) && failures < 3, staleTime: 2_000 },
    mutations: { networkMode: "always" },
  },
});
onConnection(() => isConnected() && void renew(cache));

function Root() {
  const [language, setLanguage] = useState(() => firstLanguage(localStorage.getItem(LANGUAGE), navigator.languages));
  const spoken = useMemo(
    () =>
      tongue(language, (next: Language) => {
        localStorage.setItem(LANGUAGE, next);
        setLanguage(next);
      }),
    [language],
  );
  useEffect(() => {
    document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
  }, [language]);
  return (
    <TongueContext.Provider value={spoken}>
      <Toasts>
        <App />
      </Toasts>
    </TongueContext.Provider>
  );
}

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <QueryClientProvider client={cache}>
      <Root />
    </QueryClientProvider>
  </StrictMode>,
);
