// Two clients on one thread, through @langchain/react's useStream: node use_stream_two.mjs URL ASSISTANT CONFIG QUESTION.
// One client asks; the other opens the thread while it runs. The second one sends a reply that cannot be used, and then an
// approval. A third client opens the thread at the end. Prints what each hook shows after each of these steps.
import { JSDOM } from "jsdom";

const [, , url, assistant, config, question] = process.argv;
const page = new JSDOM("<!doctype html><div id='root'></div>", { url });
globalThis.window = page.window;
globalThis.document = page.window.document;
globalThis.navigator ??= page.window.navigator;

const { createElement } = await import("react");
const { createRoot } = await import("react-dom/client");
const { useStream } = await import("@langchain/react");

const clients = [];

async function open(threadId = null) {
  const at = clients.length;
  const Client = () => {
    clients[at] = useStream({ apiUrl: url, assistantId: assistant, threadId });
    return null;
  };
  createRoot(document.createElement("div")).render(createElement(Client));
  await until(() => clients[at]);
}

async function until(condition) {
  const limit = Date.now() + 60_000;
  while (!condition()) {
    if (Date.now() > limit) throw new Error(`not settled: ${JSON.stringify(clients.map(shown))}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const shown = (client) => ({
  interrupts: client.interrupts.length,
  loading: client.isLoading,
  last: client.messages.at(-1)?.text ?? null,
  error: client.error ? String(client.error) : null,
});

const print = (step) => console.log(JSON.stringify({ step, clients: clients.map(shown) }));
const options = { config: { configurable: JSON.parse(config) } };

await open();
const submitted = clients[0].submit({ messages: [{ type: "human", content: question }] }, options);
await until(() => clients[0].values?.kind);
await open(clients[0].threadId);
await submitted;
await until(() => clients.every((client) => client.interrupts.length === 1));
print("waiting");

await clients[1].respond({ decisions: [{ type: "perhaps" }] }, options).catch(() => {});
await until(() => clients[1].error && !clients[1].isLoading);
print("refused");

// Without the id, the SDK takes the interrupt for answered.
const { id: interruptId } = clients[1].interrupt;
await clients[1].respond({ decisions: [{ type: "approve" }] }, { ...options, interruptId });
await until(() => clients.every((client) => !client.isLoading && client.messages.at(-1).text.startsWith("Edric Gannow")));
await until(() => clients.every((client) => client.interrupts.length === 0));
print("approved");

await open(clients[0].threadId);
await until(() => clients[2].messages.length > 0 && !clients[2].isThreadLoading);
print("opened");
process.exit(0);
