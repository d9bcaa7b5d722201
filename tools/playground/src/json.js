// JSON as people write it: where it is broken, and numbers that survive the way through JavaScript.

const exact = (key, value, context) => {
  const lossy = typeof value === "number" && context && String(value) !== context.source;
  return lossy && !Number.isSafeInteger(value) && JSON.rawJSON ? JSON.rawJSON(context.source) : value;
};

/** Parses a text; numbers that JavaScript would change are kept as they are written. */
export const parse = (text) => JSON.parse(text, exact);

/** @param {any} value */
export const pretty = (value) => JSON.stringify(value, null, 2) ?? "";

/** A value as one short line. */
export const brief = (value, most = 80) => {
  const text = JSON.stringify(value) ?? "";
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
};

export const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

export const isObject = (value) =>
  value !== null && typeof value === "object" && !Array.isArray(value) && !("rawJSON" in value);

/**
 * Says what is wrong with a text and where, in the same words in every browser.
 * @param {string} text
 * @returns {{value: any} | {fault: {message: string, line: number, column: number, offset: number}}}
 */
export function read(text) {
  try {
    return { value: parse(text) };
  } catch {
    const { message, offset } = firstFault(text);
    const before = text.slice(0, offset).split("\n");
    return { fault: { message, offset, line: before.length, column: before.at(-1).length + 1 } };
  }
}

const TOKEN =
  /[\s]*(?:([{}[\],:])|("(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*")|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.]))/y;

class Fault extends Error {
  constructor(message, offset) {
    super(message);
    this.offset = offset;
  }
}

/** Walks a text by the grammar up to the first place that does not fit. */
function firstFault(text) {
  let at = 0;
  const start = () => at + /^\s*/.exec(text.slice(at))[0].length;
  const peek = () => {
    TOKEN.lastIndex = at;
    return TOKEN.exec(text) || [];
  };
  const take = (expected, fits) => {
    const [whole, ...kinds] = peek();
    const kind = kinds.findIndex((part) => part !== undefined);
    const open = whole === undefined && text[start()] === '"';
    if (open) throw new Fault('this text has no closing "', start());
    if (whole === undefined || !fits(kinds[kind], kind)) throw new Fault(expected, start());
    at += whole.length;
    return kinds[kind];
  };
  const list = (close, each) => {
    if (peek()[1] === close) return take("", () => true);
    do each();
    while (take(`"," or "${close}" is expected here`, (part) => part === "," || part === close) === ",");
  };
  const value = () => {
    const found = take("a value is expected here", (part, kind) => kind > 0 || part === "{" || part === "[");
    if (found === "[") list("]", value);
    if (found === "{") list("}", member);
  };
  const member = () => {
    take('a key in "…" is expected here', (part, kind) => kind === 1);
    take('":" is expected here', (part) => part === ":");
    value();
  };
  try {
    value();
    if (text.slice(at).trim()) throw new Fault("nothing more is expected here", start());
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
  return { message: "this is not JSON", offset: 0 };
}
