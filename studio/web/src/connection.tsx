/** Whether the server and its model server can be reached, and a banner while they cannot. */

import { useQuery } from "@tanstack/react-query";
import { useEffect, useSyncExternalStore } from "react";
import { ApiError, get, isReachable, onReachable } from "./api";
import { client } from "./server";

/** The server repeats a check after five seconds, which may take three: a lost model server is shown within ten. */
const PAUSE = 2_000;

interface Readiness {
  /** The problem of each store and of the model server, or "ok"; only with a valid key. */
  checks?: Record<string, string>;
}

/** Shown while the server, one of its stores or the model server cannot be reached; all are asked every few seconds. */
export function ConnectionBanner() {
  const reachable = useSyncExternalStore(onReachable, isReachable);
  const { data, error, refetch } = useQuery({
    queryKey: ["connection"],
    queryFn: ({ signal }) => get<Readiness>("/readyz", signal),
    refetchInterval: PAUSE,
    retry: false,
    staleTime: 0,
  });
  useEffect(() => {
    if (reachable) void client.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== "connection" });
  }, [reachable]);
  const problem = reachable ? problemOf(data, error) : "The server cannot be reached. Trying again…";
  return (
    <div role="status">
      {problem && (
        <p className="banner row">
          {problem}
          {!reachable && <button onClick={() => void refetch()}>Try now</button>}
        </p>
      )}
    </div>
  );
}

const UNAVAILABLE = 503;
const REMEDY = "Start one with “sleuth model serve”, or set SLEUTH_MODEL_URL.";

/** What cannot be used; empty if nothing is wrong. */
export function problemOf(readiness?: Readiness, error: Error | null = null): string {
  if (error instanceof ApiError && error.status === UNAVAILABLE) {
    return "The server cannot use its documents or runs. Its log and “sleuth doctor” show why.";
  }
  const model = readiness?.checks?.model ?? "ok";
  return model === "ok" ? "" : `The model server is not available (${model}). ${REMEDY}`;
}
