// A component with useStream in a page of jsdom, which asks one question: node use_stream_example.mjs TSX URL QUESTION.
// Prints the messages of the page at the end, and the texts of the answer while it was written.
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { JSDOM } from "jsdom";

const [, , source, url, question] = process.argv;
const page = new JSDOM("<!doctype html><div id='root'></div>", { url });
for (const name of ["window", "document", "FormData", "Event"]) globalThis[name] = page.window[name] ?? page.window;
globalThis.navigator ??= page.window.navigator;

const outfile = fileURLToPath(new URL("node_modules/.cache/use_stream.mjs", import.meta.url));
await build({ entryPoints: [source], outfile, bundle: true, format: "esm", packages: "external", jsx: "automatic" });
const { createElement } = await import("react");
const { createRoot } = await import("react-dom/client");
const { Chat } = await import(outfile);

createRoot(document.getElementById("root")).render(createElement(Chat, { apiUrl: url }));
const messages = () => [...document.querySelectorAll("p")].map((message) => message.textContent);
const partial = new Set();
const until = async (condition) => {
  const limit = Date.now() + 120_000;
  while (!condition()) {
    if (Date.now() > limit) throw new Error(`The page shows: ${messages().join("\n")}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
};

const observer = new page.window.MutationObserver(() => messages()[1] && partial.add(messages()[1]));
observer.observe(document.body, { childList: true, subtree: true, characterData: true });
await until(() => document.querySelector("input"));
document.querySelector("input").value = question;
document.querySelector("form").requestSubmit();
await until(() => messages()[1]?.includes("[1] "));
console.log(JSON.stringify({ messages: messages(), partial: [...partial] }));
process.exit(0);
