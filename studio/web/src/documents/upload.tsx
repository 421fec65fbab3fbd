import { useEffect, useRef, useState } from "react";
import { get, post, request, said } from "../api";
import { count } from "../format";
import { Problem } from "../parts";
import { go, hrefOf } from "../route";
import { pause } from "../sse";
import type { Ingest } from "../types";
import { useAction } from "../use";

interface Props {
  /** An upload that was begun; the address holds it, so that its progress is there after a reload. */
  ingest: string;
  onRead: () => void;
}

/** Takes files, dropped or chosen, and shows how far they have been read. */
export function Upload({ ingest, onRead }: Props) {
  const [over, setOver] = useState(false);
  const chosen = useRef<File[]>([]);
  const chooser = useRef<HTMLInputElement>(null);
  const sent = useRef(new AbortController());
  const sending = useAction(async () => {
    sent.current = new AbortController();
    go(hrefOf("documents", "", { ingest: await send(chosen.current, sent.current.signal) }));
  });
  const { state, problem } = useIngest(ingest, onRead);
  const busy = sending.busy || (ingest !== "" && !state?.done && !problem);
  const take = (files: FileList | null) => {
    chosen.current = [...(files ?? [])];
    if (chosen.current.length && !busy) void sending.run();
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
        <button className="link" disabled={busy} onClick={() => chooser.current?.click()}>
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
      {sending.busy ? (
        <Sending
          onCancel={() => {
            sent.current.abort("The upload was cancelled.");
          }}
        />
      ) : (
        state && <Reading id={ingest} state={state} />
      )}
      <Problem>{sending.problem || problem}</Problem>
    </section>
  );
}

/** How far an upload has been read, asked every second until it is done. */
function useIngest(id: string, onRead: () => void) {
  const [known, setKnown] = useState<{ id: string; state: Ingest | null; problem: string } | null>(null);
  const read = useRef(onRead);
  useEffect(() => {
    read.current = onRead;
  });
  useEffect(() => {
    if (!id) return;
    const leaving = new AbortController();
    const follow = async () => {
      for (let done = false; !done && !leaving.signal.aborted;) {
        const state = await get<Ingest>(`ingests/${id}`, leaving.signal);
        setKnown({ id, state, problem: "" });
        read.current();
        done = state.done;
        if (!done) await pause(leaving.signal);
      }
    };
    follow().catch((error: unknown) => {
      if (!leaving.signal.aborted) setKnown({ id, state: null, problem: said(error) });
    });
    return () => {
      leaving.abort();
    };
  }, [id]);
  return known?.id === id ? known : { state: null, problem: "" };
}

function Sending({ onCancel }: { onCancel: () => void }) {
  return (
    <>
      <Progress told="Sending the files" />
      <button onClick={onCancel}>Cancel</button>
    </>
  );
}

/** How far the files have been read, or what became of that. */
function Reading({ id, state }: { id: string; state: Ingest }) {
  const stopping = useAction(() => post(`ingests/${id}/stop`));
  const ending = stopping.busy || state.status === "stopping";
  return (
    <>
      {state.done ? (
        <p role="status">{told(state)}</p>
      ) : (
        <>
          <Progress told={told(state)} value={state.read} max={state.total} />
          <button onClick={() => void stopping.run()} disabled={ending}>
            {ending ? "Stopping after this file…" : "Stop reading"}
          </button>
        </>
      )}
      {state.failed.map(({ source, problem }) => (
        <Problem key={source}>{source ? `${source}: ${problem}` : problem}</Problem>
      ))}
      <Problem>{stopping.problem}</Problem>
    </>
  );
}

function told({ status, read, total, done }: Ingest): string {
  if (status === "waiting") return "Waiting for its turn";
  if (status === "stopped") return `Stopped: ${read} of ${count(total, "file")} read in. What was read stays.`;
  return done ? `${count(read, "file")} read in.` : `${read} of ${count(total, "file")} read`;
}

function Progress({ told, ...bar }: { told: string; value?: number; max?: number }) {
  return (
    <label className="progress">
      <span role="status">{told}</span>
      <progress {...bar} />
    </label>
  );
}

async function send(files: File[], signal: AbortSignal): Promise<string> {
  const form = new FormData();
  for (const file of files) form.append("files", file);
  const response = await request("documents", { method: "POST", body: form, signal });
  return ((await response.json()) as { ingest: string }).ingest;
}
