import { useCallback, useEffect, useReducer, useRef, useState } from "react";
import { get, said } from "../api";
import { NOTHING, reduce, type Live } from "../events";
import { readEvents, type ServerEvent } from "../sse";
import type { Run } from "../types";

interface Watching {
  live: Live;
  problem: string;
  /** The stream has ended, and the server says that the run has. */
  over: boolean;
  /** It was begun again from here, and has not ended since. */
  going: boolean;
  /** Listens again; what was heard stays. */
  listen: () => void;
  /** Listens again to a run that goes on where it was stopped. */
  resumed: () => void;
}

async function isOver(id: string): Promise<boolean> {
  const { thread } = await get<Run>(`runs/${id}`);
  return thread.state !== "running";
}

/** A run as it happens. After a reload its stored events are read from the first on, so nothing is lost. */
export function useLive(id: string): Watching {
  const [live, dispatch] = useReducer(reduce, NOTHING);
  const [problem, setProblem] = useState("");
  const [over, setOver] = useState(false);
  const [going, setGoing] = useState(false);
  const [turn, setTurn] = useState(0);
  const last = useRef("");
  useEffect(() => {
    const leaving = new AbortController();
    const follow = async () => {
      const events = readEvents(`runs/${id}/events`, last.current, leaving.signal, () => isOver(id));
      for await (const event of events) {
        last.current = event.id || last.current;
        dispatch(event);
      }
    };
    follow()
      .catch((error: unknown) => {
        if (!leaving.signal.aborted) setProblem(said(error));
      })
      .finally(() => {
        if (leaving.signal.aborted) return;
        setOver(true);
        setGoing(false);
      });
    return () => {
      leaving.abort();
    };
  }, [id, turn]);
  const listen = useCallback(() => {
    setProblem("");
    setOver(false);
    setGoing(true);
    setTurn((before) => before + 1);
  }, []);
  const resumed = useCallback(() => {
    dispatch(RESUMED);
    listen();
  }, [listen]);
  return { live, problem, over, going, listen, resumed };
}

const RESUMED: ServerEvent = { id: "", name: "resumed", data: "{}" };
