// A run with its tree that is followed until it ends, for any user interface.
import type { Decision, Run, RunEvent, WaitingCall } from "./protocol.js";
import * as api from "./requests.js";
import { ApiError, isTransient, pause } from "./stream.js";
import { EventTree, type CallNode } from "./tree.js";

export interface LiveRunOptions extends api.Endpoint {
  /**
   * The name of a parameter of the page's address that keeps the id of the run, so that a page that is loaded again
   * and a copied address show the same run. By default the id is not kept.
   */
  param?: string;
}

/** A decision about a call: whether it can run, a reason for the model, other arguments as JSON text. */
export type Answer = Omit<Decision, "call_id" | "path" | "arguments"> & { arguments?: string | null };

/** The milliseconds between two questions whether another page has decided about a waiting run. */
const DECISION_PAUSE = 2_000;
/** The same while the server is storing the end of a run. */
const END_PAUSE = 250;

/** A run that a page starts or opens, its tree, and what the user can do with it. */
export class LiveRun {
  options: LiveRunOptions;
  tree = new EventTree();
  /** The id of the run; `null` before the start. */
  id: string | null = null;
  status: "idle" | "starting" | Run["status"] = "idle";
  /** The final output, when the run has ended. */
  output: unknown = null;
  /** Whether the connection is lost; it is tried again and again. */
  lost = false;
  /** Why the run or the last request failed. */
  error: string | null = null;
  #listeners = new Set<() => void>();
  #stop: AbortController | null = null;
  #wake: AbortController | null = null;
  #drawing = false;

  constructor(options: LiveRunOptions) {
    this.options = options;
  }

  /** Calls a function after each change, at most once for each frame of the screen. Returns how to stop it. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  get isRunning(): boolean {
    return ["starting", "running", "orphaned"].includes(this.status);
  }

  /** The calls that wait for a decision. */
  get approvals(): CallNode[] {
    return this.tree.approvals;
  }

  /** Starts a run, and follows it. Until the server has answered, a second call (a double click) has no effect. */
  async start(request: api.RunRequest): Promise<void> {
    if (this.status === "starting" && !this.#stop?.signal.aborted) return;
    this.#reset("starting");
    const { signal } = this.#stop!;
    const run = await this.#attempt(() =>
      api.startRun(this.options, request, { signal, onLost: this.#onLost }),
    );
    if (signal.aborted) return;
    if (run) this.open(run.run_id);
    else this.#set({ status: "idle" });
  }

  /** Shows a run, and follows it; by default the one in the page's address, if there is one. */
  open(id: string | null = this.#remembered()): void {
    if (!id) return;
    if (id !== this.id) this.#reset("running");
    this.#stop?.abort();
    this.#stop = new AbortController();
    this.#set({ id });
    this.#remember(id);
    void this.#follow(id, this.#stop.signal);
  }

  /** Stops following the run, which continues. */
  close(): void {
    this.#stop?.abort();
  }

  /** Cancels the run. */
  async cancel(reason = ""): Promise<void> {
    await this.#ask((id) => api.cancelRun(this.options, id, reason, this.#requesting));
  }

  /** Cancels one call; the run continues. */
  async cancelCall(call: CallNode): Promise<void> {
    await this.#ask((id) => api.cancelCall(this.options, id, call.path.at(-1)!, this.#requesting));
  }

  /** Decides about a call that waits. Returns why the server has refused the decision, else `null`. */
  async decide(call: CallNode, decision: boolean | Omit<Decision, "call_id" | "path">): Promise<string | null> {
    const rest = typeof decision === "boolean" ? { approve: decision } : decision;
    const { arguments: edit } = rest; // shown again if it is refused
    call.edit = typeof edit === "object" && edit ? JSON.stringify(edit, null, 2) : edit;
    const whole = { call_id: call.path.at(-1)!, path: call.path, ...rest };
    const state = await this.#ask((id) => api.decide(this.options, id, [whole], this.#requesting));
    if (!state) {
      const { error } = this;
      this.#set({ error: null }); // the caller shows it next to the call
      return error;
    }
    this.#setApprovals(state.approvals);
    this.#wake?.abort();
    return null;
  }

  /** Continues a run whose server has ended. */
  async resume(): Promise<void> {
    await this.#ask((id) => api.resumeRun(this.options, id, this.#requesting));
    this.#wake?.abort();
  }

  async #follow(id: string, signal: AbortSignal): Promise<void> {
    await this.#attempt(async () => {
      try {
        await this.#read(id, signal);
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof ApiError && error.status === 404) this.tree.lose(); // it was in memory only
        this.#set({ status: "error" });
        throw error;
      }
    });
  }

  async #read(id: string, signal: AbortSignal): Promise<void> {
    const options = { signal, onLost: this.#onLost };
    let known = -1;
    while (!signal.aborted) {
      for await (const event of api.followRun(this.options, id, { ...options, after: this.tree.lastId })) {
        if (signal.aborted || this.#apply(event)) return;
        if (this.status === "interrupted") break;
      }
      const run = await this.#state(id, signal);
      if (!run) return;
      this.#setApprovals(run.approvals);
      const isNew = run.last_event_id > Math.max(known, this.tree.lastId);
      known = run.last_event_id;
      if (isNew) continue; // the run has continued meanwhile, perhaps from another page
      this.#set({ status: run.status, output: run.output, error: run.error });
      if (ENDED.has(run.status)) return;
      this.#wake = new AbortController();
      await pause(run.status === "interrupted" ? DECISION_PAUSE : END_PAUSE, signal, this.#wake.signal);
    }
  }

  /** Adds an event. Returns whether the run has ended. */
  #apply(event: RunEvent): boolean {
    const isOver = this.tree.apply(event);
    this.#set({ status: RUNNING.find((one) => one === this.tree.root.status) ?? "running" });
    if (isOver && event.type === "run_finished_event") this.#set({ output: event.output, error: event.error });
    return isOver;
  }

  /** Requests the state of the run, through lost connections. */
  async #state(id: string, signal: AbortSignal): Promise<Run | undefined> {
    while (!signal.aborted) {
      try {
        const run = await api.getRun(this.options, id, signal);
        this.#onLost(false);
        return run;
      } catch (error) {
        if (!isTransient(error)) throw error;
        if (!signal.aborted) this.#onLost(true);
        await pause(DECISION_PAUSE, signal);
      }
    }
    return undefined;
  }

  #setApprovals(approvals: WaitingCall[]): void {
    this.tree.setApprovals(approvals);
    this.#draw();
  }

  #reset(status: LiveRun["status"]): void {
    this.#stop?.abort();
    this.#stop = new AbortController();
    this.tree = new EventTree();
    this.#set({ id: null, status, output: null, lost: false, error: null });
  }

  #ask<T>(action: (id: string) => Promise<T>): Promise<T | undefined> {
    const { id } = this;
    return id === null ? Promise.resolve(undefined) : this.#attempt(() => action(id));
  }

  /** Runs something that asks the server; a failure is shown as `error`. */
  async #attempt<T>(action: () => Promise<T>): Promise<T | undefined> {
    const { signal } = this.#stop ?? {};
    this.#set({ error: null });
    try {
      return await action();
    } catch (error) {
      if (!signal?.aborted) this.#set({ error: (error as Error).message, lost: false });
      return undefined;
    }
  }

  #onLost = (lost: boolean): void => {
    if (lost !== this.lost) this.#set({ lost });
  };

  get #requesting(): api.RequestOptions {
    return { signal: this.#stop?.signal, onLost: this.#onLost };
  }

  #set(fields: Partial<Pick<LiveRun, "id" | "status" | "output" | "lost" | "error">>): void {
    Object.assign(this, fields);
    this.#draw();
  }

  /** However many events a frame brings, the listeners are called once. */
  #draw(): void {
    if (this.#drawing) return;
    this.#drawing = true;
    (globalThis.requestAnimationFrame ?? setTimeout)(() => {
      this.#drawing = false;
      this.tree.flush();
      this.#listeners.forEach((listener) => listener());
    });
  }

  #remembered(): string | null {
    const { param } = this.options;
    return param ? new URLSearchParams(location.search).get(param) : null;
  }

  #remember(id: string): void {
    const { param } = this.options;
    if (!param || id === this.#remembered()) return;
    const address = new URL(location.href);
    address.searchParams.set(param, id);
    history.replaceState(history.state, "", address);
  }
}

const ENDED = new Set<Run["status"]>(["ok", "cancelled", "error"]);
const RUNNING = ["interrupted", ...ENDED] as const;
