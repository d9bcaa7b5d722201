/** Returns the arguments of a call for a text field. */
export declare function argumentsText(args: unknown, sent?: string): string;
/** Returns why a text cannot be the arguments of a call; `null` if it is a JSON object. */
export declare function argumentsProblem(text: string): string | null;
