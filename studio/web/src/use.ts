/** React hooks for loading from the server and for actions. */

import { useCallback, useEffect, useState } from "react";
import { get, messageOf } from "./api";

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
 * The value of a path, reloaded when the version changes; an empty path loads nothing. The old value stays until the
 * new one has arrived.
 */
export function useLoaded<T>(path: string, version: number | boolean = 0): Loaded<T> {
  const [turn, setTurn] = useState(0);
  const [got, setGot] = useState<Got<T>>({ path: "", value: null, problem: "" });
  useEffect(() => {
    if (!path) return;
    const closing = new AbortController();
    get<T>(path, closing.signal)
      .then((value) => {
        setGot({ path, value, problem: "" });
      })
      .catch((error: unknown) => {
        if (!closing.signal.aborted) setGot({ path, value: null, problem: messageOf(error) });
      });
    return () => {
      closing.abort();
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

/** An action of a button, with its busy state and its error. */
export function useAction(act: () => Promise<void>): Action {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const run = async () => {
    setBusy(true);
    setProblem("");
    try {
      await act();
    } catch (error) {
      setProblem(messageOf(error));
    } finally {
      setBusy(false);
    }
  };
  return { busy, problem, run };
}
