// The arguments of a call as text that a person edits.

/** Returns the arguments of a call for a text field. */
export function argumentsText(args: unknown, sent?: string): string {
  const text = sent ?? (typeof args === "string" ? args : JSON.stringify(args));
  // JavaScript would round a number of 16 digits or more, so it stays as the server sent it.
  return typeof args === "string" || /\d{16}/.test(text) ? text : JSON.stringify(args, null, 2);
}

/** Returns why a text cannot be the arguments of a call; `null` if it is a JSON object. */
export function argumentsProblem(text: string): string | null {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? null : "Arguments: expected a JSON object. Write them in braces.";
  } catch (error) {
    return `Arguments: expected JSON. ${(error as Error).message}`;
  }
}
