/** The page: navigation, the latest runs, and the view of the current address. */

import { QueryClientProvider } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useRef, useState } from "react";
import { onUnauthorized } from "./api";
import { Ask } from "./ask";
import { ConnectionBanner } from "./connection";
import { loaded } from "./loaded";
import { ErrorBoundary } from "./error-boundary";
import { KeyDialog } from "./key-dialog";
import { NotFound } from "./not-found";
import { Busy } from "./parts";
import { hrefOf, usePlace, type Place } from "./route";
import { RunPage } from "./run/run";
import { LatestRuns } from "./runs/latest-runs";
import { client } from "./server";

const Documents = lazy(() => loaded(() => import("./documents/documents")));
const Runs = lazy(() => loaded(() => import("./runs/runs")));

const VIEWS = [
  { view: "", label: "Ask" },
  { view: "runs", label: "Runs" },
  { view: "documents", label: "Documents" },
];

export function App() {
  const place = usePlace();
  const [locked, setLocked] = useState(false);
  const [session, setSession] = useState(0);
  useEffect(() => {
    onUnauthorized(() => setLocked(true));
  }, []);
  useFocusOnChange(`${place.view}/${place.id}`);
  const unlock = () => {
    client.clear();
    setLocked(false);
    setSession((before) => before + 1);
  };
  return (
    <QueryClientProvider client={client}>
      <div className="frame" key={session}>
        <a className="skip" href="#main" onClick={skip}>
          Skip to the content
        </a>
        <header className="side">
          <a className="brand" href={hrefOf("")}>
            <img src="./favicon.svg" alt="" width="24" height="24" /> sleuth
          </a>
          <nav aria-label="Views">
            {VIEWS.map(({ view, label }) => (
              <a key={label} href={hrefOf(view)} aria-current={isAt(place, view) ? "page" : undefined}>
                {label}
              </a>
            ))}
          </nav>
          <section className="recent" aria-label="Latest runs">
            <LatestRuns current={place.view === "runs" ? place.id : ""} />
          </section>
        </header>
        <main id="main" tabIndex={-1}>
          <ConnectionBanner />
          <ErrorBoundary key={`${place.view}/${place.id}`}>
            <Suspense fallback={<Busy>Loading</Busy>}>
              <View place={place} />
            </Suspense>
          </ErrorBoundary>
        </main>
        {locked && <KeyDialog onKey={unlock} />}
      </div>
    </QueryClientProvider>
  );
}

/** Move the focus to a new view, as a browser does on a new page; a view may move it further. */
function useFocusOnChange(view: string) {
  const last = useRef(view);
  useEffect(() => {
    const main = document.getElementById("main");
    if (last.current !== view && !main?.contains(document.activeElement)) main?.focus();
    last.current = view;
  }, [view]);
}

function isAt(place: Place, view: string): boolean {
  return place.view === view && !place.id;
}

/** Skip without changing the address, which contains the view. */
function skip(event: React.MouseEvent) {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function View({ place }: { place: Place }) {
  switch (place.view) {
    case "":
      return <Ask from={place.query.get("from") ?? ""} />;
    case "documents":
      return <Documents key={place.id} id={place.id} ingest={place.query.get("ingest") ?? ""} />;
    case "runs":
      return place.id ? <RunPage key={place.id} id={place.id} query={place.query} /> : <Runs query={place.query} />;
    default:
      return <NotFound title="This page does not exist" />;
  }
}
