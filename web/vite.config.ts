import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// The service hands the built files out itself; nothing is loaded from another host.
export default defineConfig({
  plugins: [react()],
  base: "/",
  build: { outDir: "../src/everthread/http/static", emptyOutDir: true, assetsInlineLimit: 0, target: "es2022", chunkSizeWarningLimit: 900 },
  server: { proxy: { "/api": "http://127.0.0.1:8123", "/healthz": "http://127.0.0.1:8123" } },
  test: { include: ["tests/**/*.test.ts"] },
});
