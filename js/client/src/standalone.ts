// For a page without a build step: the client and the components, with Preact in place of React.
import { h, render, type ComponentType } from "preact";
import type { LiveRunOptions, RunRequest } from "./client.js";
import { RunTree, useRun } from "./react.js";

export * from "./client.js";
export * from "./react.js";

export interface ShowRunOptions extends LiveRunOptions {
  /** The run to show at first. */
  id?: string;
}

/**
 * Shows runs in an element of the page. Returns a function that starts a run there.
 *
 * With `param`, a page that is loaded again shows its run again.
 */
export function showRun(element: Element, options: ShowRunOptions): (request: RunRequest) => Promise<void> {
  let start: (request: RunRequest) => Promise<void>;
  function App() {
    const run = useRun(options);
    start = (request) => run.start(request);
    return h(RunTree as ComponentType<{ run: typeof run }>, { run });
  }
  render(h(App, null), element);
  return (request) => start(request);
}
