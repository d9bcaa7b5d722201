import { type ReactElement } from "react";
/** What the components need of an agent of AG-UI. */
interface Agent {
    messages: readonly object[];
}
/** An activity, and its content. Their fields are documented with the events of AG-UI. */
type Loose = any;
/** Shows the tree of a call at the activity of the outermost call. */
declare function Activity({ message, agent }: {
    message: Loose;
    agent: Agent | undefined;
}): ReactElement | null;
/** For `<CopilotKitProvider renderActivityMessages={activities}>`: calls with their progress, artifacts and inner calls. */
export declare const activities: {
    activityType: string;
    content: {
        "~standard": {
            version: 1;
            vendor: string;
            validate: (value: unknown) => {
                value: Loose;
            };
        };
    };
    render: typeof Activity;
}[];
interface Interrupts {
    interrupts: readonly object[];
    resolve(payload: unknown, interruptId: string): unknown;
}
/** For `useInterrupt({ render: approvals })`: the calls that wait for a decision, with arguments that can be edited. */
export declare function approvals({ interrupts, resolve }: Interrupts): ReactElement;
export {};
