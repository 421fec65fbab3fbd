import { useCallback, useEffect, useReducer, useRef, useState } from "react";
import { get, messageOf } from "../api";
import { NOTHING, reduce, type Live } from "../events";
import { readEvents, type ServerEvent } from "../sse";
import type { Run } from "../types";

interface Watching {
  live: Live;
  problem: string;
  /** The stream and the run have ended. */
  over: boolean;
  /** The run was resumed from this page and has not ended since. */
  going: boolean;
  /** Follow the run again and keep the events so far. */
  listen: () => void;
  /** Follow a run that was resumed after it was stopped. */
  resumed: () => void;
}

async function isOver(id: string): Promise<boolean> {
  const { thread } = await get<Run>(`runs/${id}`);
  return thread.state !== "running";
}

/** The live events of a run. After a reload, all stored events are read again. */
export function useLive(id: string): Watching {
  const [live, dispatch] = useReducer(reduce, NOTHING);
  const [problem, setProblem] = useState("");
  const [over, setOver] = useState(false);
  const [going, setGoing] = useState(false);
  const [turn, setTurn] = useState(0);
  const last = useRef("");
  useEffect(() => {
    const closing = new AbortController();
    const follow = async () => {
      const events = readEvents(`runs/${id}/events`, last.current, closing.signal, () => isOver(id));
      for await (const event of events) {
        last.current = event.id || last.current;
        dispatch(event);
      }
    };
    follow()
      .catch((error: unknown) => {
        if (!closing.signal.aborted) setProblem(messageOf(error));
      })
      .finally(() => {
        if (closing.signal.aborted) return;
        setOver(true);
        setGoing(false);
      });
    return () => {
      closing.abort();
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
