/** The server's state in a query cache: loaded once, refreshed on focus and after changes, retried while offline. */

import { onlineManager, QueryClient, useQuery, type Query } from "@tanstack/react-query";
import { useState } from "react";
import { ApiError, get, messageOf } from "./api";

const FRESH = 2_000;
const RETRIES = 2;
const GONE = 404;

export const client = new QueryClient({
  defaultOptions: { queries: { staleTime: FRESH, retry: isTemporary, retryDelay: 1_000, networkMode: "always" } },
});
// The server may run on this computer: a lost internet connection does not matter.
onlineManager.setOnline(true);

/** An unreachable server is asked until it answers; the banner shows that. */
function isTemporary(failures: number, error: Error): boolean {
  if (!(error instanceof ApiError)) return false;
  return error.status === 0 || (error.status >= 500 && failures < RETRIES);
}

export interface Loaded<T> {
  value: T | null;
  /** The error, if there is no value. */
  problem: string;
  /** The HTTP status of the error; 0 without one. */
  status: number;
}

/** The value of a path below `v1/`; an empty path loads nothing. `every` returns the milliseconds to the next load. */
export function useServer<T>(path: string, every: (value?: T) => number | false = () => false): Loaded<T> {
  const { data, error } = useQuery({
    queryKey: [path],
    queryFn: ({ signal }) => get<T>(path, signal),
    enabled: path !== "",
    refetchInterval: ({ state }) => every(state.data),
  });
  // A value that was loaded before is shown until the server answers that it is gone.
  const isGone = error instanceof ApiError && error.status === GONE;
  const failed = data === undefined || isGone ? error : null;
  return {
    value: isGone ? null : (data ?? null),
    problem: failed ? messageOf(failed) : "",
    status: failed instanceof ApiError ? failed.status : 0,
  };
}

/** Reload every shown value whose path begins with one of these; other values when they are shown next. */
export function refresh(...paths: string[]): void {
  const isChanged = ({ queryKey: [key] }: Query) => paths.some((path) => String(key).startsWith(path));
  void client.invalidateQueries({ predicate: isChanged });
}

export interface Action<A extends unknown[]> {
  busy: boolean;
  problem: string;
  run: (...given: A) => Promise<void>;
}

/** An action of a button, with its busy state and its error. */
export function useAction<A extends unknown[]>(act: (...given: A) => Promise<void>): Action<A> {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const run = async (...given: A) => {
    setBusy(true);
    setProblem("");
    try {
      await act(...given);
    } catch (error) {
      setProblem(messageOf(error));
    } finally {
      setBusy(false);
    }
  };
  return { busy, problem, run };
}
