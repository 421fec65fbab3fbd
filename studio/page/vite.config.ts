import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

const SERVER = "http://127.0.0.1:8100";

export default defineConfig({
  // Relative, so that the same files work at / and at /app.
  base: "./",
  plugins: [react()],
  // Whoever gets the built files gets the licences of what is in them.
  build: { target: "es2022", license: { fileName: "licenses.md" } },
  server: { proxy: { "/v1": SERVER, "/healthz": SERVER } },
});
