/** Loading from the server, as React sees it. */

import { useCallback, useEffect, useState } from "react";
import { get, said } from "./api";

export interface Loaded<T> {
  value: T | null;
  problem: string;
  reload: () => void;
}

interface Got<T> {
  path: string;
  value: T | null;
  problem: string;
}

/**
 * What a path holds, loaded again when the version is another; nothing is loaded while the path is empty. What was
 * there stays until what is new has arrived.
 */
export function useLoaded<T>(path: string, version: number | boolean = 0): Loaded<T> {
  const [turn, setTurn] = useState(0);
  const [got, setGot] = useState<Got<T>>({ path: "", value: null, problem: "" });
  useEffect(() => {
    if (!path) return;
    const leaving = new AbortController();
    get<T>(path, leaving.signal)
      .then((value) => {
        setGot({ path, value, problem: "" });
      })
      .catch((error: unknown) => {
        if (!leaving.signal.aborted) setGot({ path, value: null, problem: said(error) });
      });
    return () => {
      leaving.abort();
    };
  }, [path, version, turn]);
  const reload = useCallback(() => {
    setTurn((before) => before + 1);
  }, []);
  return got.path === path ? { value: got.value, problem: got.problem, reload } : { value: null, problem: "", reload };
}

export interface Action {
  busy: boolean;
  problem: string;
  run: () => Promise<void>;
}

/** Something a button does: it is busy meanwhile, and what went wrong is told. */
export function useAction(act: () => Promise<void>): Action {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const run = async () => {
    setBusy(true);
    setProblem("");
    try {
      await act();
    } catch (error) {
      setProblem(said(error));
    } finally {
      setBusy(false);
    }
  };
  return { busy, problem, run };
}
