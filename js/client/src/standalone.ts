// For a page without a build step: the client and the components, with Preact in place of React.
import { h, render, type ComponentType } from "preact";
import { LiveRun } from "./client.js";
import { RunTree, useLiveRun, type UseRunOptions } from "./react.js";

export * from "./client.js";
export * from "./react.js";

/** Shows a run in an element of the page, and returns it. It is empty until it is started or opened. */
export function showRun(element: Element, { id, ...options }: UseRunOptions): LiveRun {
  const run = new LiveRun(options);
  const Tree = RunTree as ComponentType<{ run: LiveRun }>;
  const App = () => h(Tree, { run: useLiveRun(run, id) });
  render(h(App, null), element);
  return run;
}
