// What the playground's modules may use: the one list of names that vendor.js exports.
import htm from "htm";
import { h } from "preact";

export { render } from "preact";
export { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
export { batch, computed, effect, signal } from "@preact/signals";
export const html = htm.bind(h);
