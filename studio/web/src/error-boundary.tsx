import { Component, type ReactNode } from "react";
import { messageOf } from "./api";

interface State {
  error: unknown;
}

/** Shows an error of the page instead of an empty screen. */
export class ErrorBoundary extends Component<{ children: ReactNode }, State> {
  override state: State = { error: null };

  static getDerivedStateFromError(error: unknown): State {
    return { error };
  }

  override render() {
    if (this.state.error === null) return this.props.children;
    return (
      <article className="page">
        <h1>This view cannot be shown</h1>
        <p className="problem" role="alert">
          {messageOf(this.state.error)}
        </p>
        <p>Your documents and runs are not affected.</p>
        <div className="row">
          <button onClick={() => location.reload()}>Reload the page</button>
        </div>
      </article>
    );
  }
}
