/** Server-sent events over fetch, which unlike EventSource can send a key and Last-Event-ID. */

import { ApiError, request } from "./api";

export interface ServerEvent {
  id: string;
  name: string;
  data: string;
}

/** Parser that takes pieces of a stream and returns the events that they complete. */
export class Parser {
  private rest = "";

  push(piece: string): ServerEvent[] {
    const blocks = (this.rest + piece).replaceAll("\r\n", "\n").split("\n\n");
    this.rest = blocks.pop() ?? "";
    return blocks.map(parseBlock).filter((event) => event !== null);
  }
}

function parseBlock(block: string): ServerEvent | null {
  const event: ServerEvent = { id: "", name: "message", data: "" };
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const [, field, value = ""] = /^(\w+): ?(.*)$/.exec(line) ?? [];
    if (field === "id") event.id = value;
    else if (field === "event") event.name = value;
    else if (field === "data") data.push(value);
  }
  return data.length ? { ...event, data: data.join("\n") } : null;
}

const PAUSE = 1000;

export function pause(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, PAUSE);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

async function* connection(path: string, after: string, signal: AbortSignal): AsyncGenerator<ServerEvent> {
  const headers: HeadersInit = { Accept: "text/event-stream", ...(after && { "Last-Event-ID": after }) };
  const response = await request(path, { headers, signal });
  if (!response.body) return;
  const parser = new Parser();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      yield* parser.push(value);
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/**
 * The events of a stream. After a connection error it continues from the last event, until `finished` returns true.
 * Throws the errors of the server.
 */
export async function* readEvents(
  path: string,
  after: string,
  signal: AbortSignal,
  finished: () => Promise<boolean>,
): AsyncGenerator<ServerEvent> {
  let last = after;
  while (!signal.aborted) {
    try {
      let came = false;
      for await (const event of connection(path, last, signal)) {
        came = true;
        last = event.id || last;
        yield event;
      }
      if (await finished()) {
        if (came) continue; // an end is believed when nothing comes after it: the connection may have been cut
        return;
      }
    } catch (error) {
      if (error instanceof ApiError && error.status !== 0 && error.status < 500) throw error;
    }
    await pause(signal);
  }
}
