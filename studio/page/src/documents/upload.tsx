import { useRef, useState } from "react";
import { get, request } from "../api";
import { count } from "../format";
import { Problem } from "../parts";
import { pause } from "../sse";
import type { Ingest } from "../types";
import { useAction } from "../use";

const NEVER = new AbortController().signal;

/** Takes files, dropped or chosen, and shows how far they have been read. */
export function Upload({ onRead }: { onRead: () => void }) {
  const [over, setOver] = useState(false);
  const [state, setState] = useState<Ingest | null>(null);
  const chosen = useRef<File[]>([]);
  const chooser = useRef<HTMLInputElement>(null);
  const reading = useAction(async () => {
    setState(null);
    const path = `ingests/${await send(chosen.current)}`;
    for (;;) {
      const now = await get<Ingest>(path);
      setState(now);
      onRead();
      if (now.done) return;
      await pause(NEVER);
    }
  });
  const take = (files: FileList | null) => {
    chosen.current = [...(files ?? [])];
    if (chosen.current.length && !reading.busy) void reading.run();
  };
  const drop = (event: React.DragEvent) => {
    event.preventDefault();
    setOver(false);
    take(event.dataTransfer.files);
  };
  const drag = (event: React.DragEvent) => {
    event.preventDefault();
    setOver(true);
  };
  const leave = () => {
    setOver(false);
  };
  return (
    <section
      className={`upload ${over ? "over" : ""}`}
      aria-label="Add documents"
      onDrop={drop}
      onDragOver={drag}
      onDragLeave={leave}
    >
      <p>
        Drop files here, or{" "}
        <button className="link" disabled={reading.busy} onClick={() => chooser.current?.click()}>
          choose files
        </button>
      </p>
      <input
        ref={chooser}
        type="file"
        multiple
        hidden
        onChange={(event) => {
          take(event.target.files);
          event.target.value = "";
        }}
      />
      {reading.busy && <Progress state={state} />}
      {state?.done && <p role="status">{`${count(state.read, "file")} read in.`}</p>}
      {state?.failed.map(({ source, problem }) => (
        <Problem key={source}>{`${source}: ${problem}`}</Problem>
      ))}
      <Problem>{reading.problem}</Problem>
    </section>
  );
}

function Progress({ state }: { state: Ingest | null }) {
  const known = state && state.total > 0;
  const told = known ? `${state.read} of ${count(state.total, "file")} read` : "Sending the files";
  return (
    <label className="progress">
      <span role="status">{told}</span>
      <progress {...(known ? { value: state.read, max: state.total } : {})} />
    </label>
  );
}

async function send(files: File[]): Promise<string> {
  const form = new FormData();
  for (const file of files) form.append("files", file);
  const response = await request("documents", { method: "POST", body: form });
  return ((await response.json()) as { ingest: string }).ingest;
}
