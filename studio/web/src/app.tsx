/** The page: the conversations so far, and the view of the current address. */

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
import { History } from "./runs/history";
import { client } from "./server";
import { SettingsMenu } from "./settings-menu";

const Documents = lazy(() => loaded(() => import("./documents/documents")));
const Runs = lazy(() => loaded(() => import("./runs/runs")));

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
        <Rail place={place} />
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

/** The conversations and the other views; on a narrow screen behind a button, and closed by another view. */
function Rail({ place }: { place: Place }) {
  const here = `${place.view}/${place.id}`;
  const [openAt, setOpenAt] = useState("");
  const open = openAt === here;
  const at = (view: string) => (place.view === view && !place.id ? "page" : undefined);
  return (
    <header className={open ? "side open" : "side"}>
      <div className="row spread">
        <a className="brand" href={hrefOf("")}>
          <img src="./favicon.svg" alt="" width="24" height="24" /> sleuth
        </a>
        <button
          className="plain burger"
          aria-label="Conversations"
          aria-expanded={open}
          onClick={() => setOpenAt(open ? "" : here)}
        >
          ☰
        </button>
      </div>
      <a className="new" href={hrefOf("")} aria-current={at("")}>
        <span aria-hidden="true">+ </span>New question
      </a>
      <nav className="history" aria-label="Conversations">
        <History current={place.view === "runs" ? place.id : ""} />
      </nav>
      <nav className="foot" aria-label="Views">
        <a href={hrefOf("documents")} aria-current={at("documents")}>
          Documents
        </a>
        <a href={hrefOf("runs")} aria-current={at("runs")}>
          All runs
        </a>
        <SettingsMenu />
      </nav>
    </header>
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

/** Skip without changing the address, which contains the view. */
function skip(event: React.MouseEvent) {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function View({ place }: { place: Place }) {
  switch (place.view) {
    case "":
      return <Ask />;
    case "documents":
      return <Documents key={place.id} id={place.id} ingest={place.query.get("ingest") ?? ""} />;
    case "runs":
      return place.id ? <RunPage key={place.id} id={place.id} query={place.query} /> : <Runs query={place.query} />;
    default:
      return <NotFound title="This page does not exist" />;
  }
}
