// A conversation through useStream of @langchain/langgraph-sdk/react, which agent-chat-ui uses: node use_stream_runs.mjs URL,
// turns on stdin. Every line is {"submit": TEXT} or {"respond": VALUE} with a "context", or {"edit": TEXT, "at": INDEX},
// which replaces a message. What the hook holds after each turn is printed, a line each, with the "partial" texts of replies.
import { createInterface } from "node:readline";
import { JSDOM } from "jsdom";

const page = new JSDOM("<!doctype html><div id='root'></div>", { url: process.argv[2] });
globalThis.window = page.window;
globalThis.document = page.window.document;
globalThis.navigator ??= page.window.navigator;

const { createElement } = await import("react");
const { createRoot } = await import("react-dom/client");
const { useStream } = await import("@langchain/langgraph-sdk/react");

let stream;
let thread = null;
const partial = new Set();

function Chat() {
  stream = useStream({
    apiUrl: process.argv[2],
    assistantId: "chat",
    fetchStateHistory: { limit: 100 },
    onThreadId: (id) => (thread = id),
  });
  const last = stream.messages.at(-1);
  if (stream.isLoading && last?.type === "ai") partial.add(last.content);
  return createElement("p", null, stream.messages.map((message) => message.content).join("\n"));
}

const settled = async () => {
  do await new Promise((resolve) => setTimeout(resolve, 100));
  while (stream.isLoading || stream.isThreadLoading);
};

const shown = () => ({
  thread,
  messages: stream.messages.map((message) => [message.type, message.content]),
  citations: (stream.messages.at(-1)?.additional_kwargs?.citations ?? []).map((citation) => citation.quote),
  branches: stream.messages.map((message) => stream.getMessagesMetadata(message)?.branchOptions?.length ?? 0),
  interrupt: stream.interrupt?.value ?? null,
  error: stream.error ? String(stream.error) : null,
  partial: [...partial],
});

const send = (turn) => {
  const { context } = turn;
  if (turn.submit) return stream.submit({ messages: [{ type: "human", content: turn.submit }] }, { context });
  if ("respond" in turn) return stream.submit(undefined, { command: { resume: turn.respond }, context });
  const state = stream.getMessagesMetadata(stream.messages[turn.at]).firstSeenState;
  const edited = { messages: [{ type: "human", content: turn.edit }] };
  return stream.submit(edited, { checkpoint: state.parent_checkpoint, context });
};

createRoot(document.getElementById("root")).render(createElement(Chat));
await settled();
for await (const line of createInterface({ input: process.stdin })) {
  partial.clear();
  await send(JSON.parse(line));
  await settled();
  console.log(JSON.stringify(shown()));
}
process.exit(0);
