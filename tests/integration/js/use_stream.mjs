// A conversation through @langchain/react's useStream, as a page has it: node use_stream.mjs URL ASSISTANT, turns on stdin.
// Every line of input is {"submit": TEXT} or {"respond": VALUE} with a "config"; and how many "messages" there are after it,
// with what the "last" begins, whether the chat then "waits" for a reply, and how many passages are "cited". What the
// hook holds by then is printed, a line each, with the "partial" texts of replies.
import { createInterface } from "node:readline";
import { JSDOM } from "jsdom";

const page = new JSDOM("<!doctype html><div id='root'></div>", { url: process.argv[2] });
globalThis.window = page.window;
globalThis.document = page.window.document;
globalThis.navigator ??= page.window.navigator;

const { createElement, useEffect } = await import("react");
const { createRoot } = await import("react-dom/client");
const { useStream } = await import("@langchain/react");

let stream;
const waiting = new Set();
const partial = new Set();

function Chat() {
  stream = useStream({ apiUrl: process.argv[2], assistantId: process.argv[3] });
  useEffect(() => waiting.forEach((check) => check()));
  const last = stream.messages.at(-1);
  if (stream.isLoading && last?.getType() === "ai") partial.add(last.text);
  return stream.messages.map((message) => createElement("p", { key: message.id }, message.text));
}

const until = (condition) =>
  new Promise((resolve) => {
    const check = () => {
      if (!condition()) return;
      waiting.delete(check);
      resolve();
    };
    waiting.add(check);
    check();
  });

const settled = (turn) =>
  stream.error ||
  (!stream.isLoading &&
    stream.messages.length === turn.messages &&
    stream.values.messages?.length === turn.messages &&
    stream.messages.at(-1).text.startsWith(turn.last) &&
    Boolean(stream.interrupt) === turn.waits &&
    // Messages arrive before the state that has the citations.
    (stream.values.verdict?.citations.length ?? 0) === turn.cited);

const shown = () => ({
  thread: stream.threadId,
  messages: stream.messages.map((message) => [message.getType(), message.text]),
  // The protocol leaves out what a message has in addition to its text: citations are in the state.
  citations: stream.values.verdict?.citations.map((citation) => citation.quote) ?? null,
  interrupt: stream.interrupt?.value ?? null,
  error: stream.error ? String(stream.error) : null,
  page: [...document.querySelectorAll("p")].map((line) => line.textContent),
  partial: [...partial],
});

const send = (turn) => {
  const config = turn.config && { configurable: turn.config };
  if ("respond" in turn) return stream.respond(turn.respond, { config });
  return stream.submit({ messages: [{ type: "human", content: turn.submit }] }, { config });
};

createRoot(document.getElementById("root")).render(createElement(Chat));
await until(() => stream);
for await (const line of createInterface({ input: process.stdin })) {
  const turn = JSON.parse(line);
  partial.clear();
  const late = setTimeout(() => {
    console.error("not settled:", JSON.stringify(shown()));
    process.exit(1);
  }, 60_000);
  await send(turn);
  await until(() => settled(turn));
  clearTimeout(late);
  console.log(JSON.stringify(shown()));
}
process.exit(0);
