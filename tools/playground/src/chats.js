// The conversation with each agent: its session and the runs in it, oldest first.
import { signal } from "./view.js";

/** @typedef {import("./runs.js").RunView} RunView */

class Chat {
  /** The id of the session; null before the first message. @type {import("./view.js").Signal<string | null>} */
  session = signal(null);
  /** @type {import("./view.js").Signal<RunView[]>} */
  turns = signal([]);
  /** What the next messages change in the agent: `instructions` and `model`. */
  changes = signal({});
  /** Whether the session has runs before those in `turns`. */
  more = signal(false);

  /** Begins a new session, or shows another one. @param {string | null} session @param {RunView[]} turns */
  change(session, turns = [], more = false) {
    const kept = new Set(turns);
    this.turns.value.forEach((view) => kept.has(view) || view.stop.abort());
    this.session.value = session;
    this.turns.value = turns;
    this.more.value = more;
  }

  /** @param {RunView} view */
  add(view) {
    if (!this.turns.value.includes(view)) this.turns.value = [...this.turns.value, view];
  }

  /** @param {string} id The run. */
  remove(id) {
    this.turns.value = this.turns.value.filter((view) => view.id !== id);
  }
}

const chats = new Map();

/** @param {string} agent @returns {Chat} */
export function chatOf(agent) {
  if (!chats.has(agent)) chats.set(agent, new Chat());
  return chats.get(agent);
}

/** The run as it stands in a conversation. @param {string} id @returns {RunView | undefined} */
export const turnOf = (id) => [...chats.values()].flatMap((chat) => chat.turns.value).find((view) => view.id === id);

export const newSession = () => `chat_${crypto.getRandomValues(new BigUint64Array(2)).join("").slice(0, 24)}`;
