// What the components need of React, from Preact: standalone.js has it in place of React.
export { createElement, Fragment } from "preact";
export { useEffect, useId, useReducer, useRef, useState } from "preact/hooks";
