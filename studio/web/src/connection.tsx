/** Whether the server can be reached, and a banner while it cannot. */

import { useQuery } from "@tanstack/react-query";
import { useEffect, useSyncExternalStore } from "react";
import { get, isReachable, onReachable } from "./api";
import { client } from "./server";

const PAUSE = 3_000;

/** Shown while the server cannot be reached; it is asked again every few seconds. */
export function ConnectionBanner() {
  const reachable = useSyncExternalStore(onReachable, isReachable);
  const { refetch } = useQuery({
    queryKey: ["connection"],
    queryFn: ({ signal }) => get("/healthz", signal),
    enabled: !reachable,
    refetchInterval: PAUSE,
    retry: false,
    staleTime: 0,
  });
  useEffect(() => {
    if (reachable) void client.invalidateQueries();
  }, [reachable]);
  return (
    <div role="status">
      {!reachable && (
        <p className="banner row">
          The server cannot be reached. Trying again…
          <button onClick={() => void refetch()}>Try now</button>
        </p>
      )}
    </div>
  );
}
