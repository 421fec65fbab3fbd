import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const SERVER = "http://127.0.0.1:8100";

// The server takes changes only from pages of its own origin.
const PROXY = { target: SERVER, changeOrigin: true, headers: { origin: SERVER } };

export default defineConfig({
  // Relative, so that the same files work at / and at /app.
  base: "./",
  plugins: [react()],
  // Whoever gets the built files gets the licenses of what is in them.
  build: { target: "es2022", license: { fileName: "licenses.md" } },
  server: { proxy: { "/v1": PROXY, "/healthz": PROXY } },
});
