export interface WaitingCall {
    call_id: string;
    path: Array<string>;
    name: string;
    arguments: string;
}
export interface Decision {
    call_id: string;
    approve: boolean;
    path?: Array<string>;
    /** The reason of a rejection, for the model. */
    message?: string | null;
    /** Changed arguments. */
    arguments?: {
        [key: string]: unknown;
    } | string | null;
    /** Whether later calls need no approval. */
    always?: boolean | null;
}
export interface ErrorBody {
    error: {
        status: number;
        message: string;
    };
}
export interface Info {
    name: string;
    version: string;
    target: {
        kind: "agent" | "tools";
        name?: string;
    };
    on_disconnect: "cancel" | "detach";
}
export interface Run {
    run_id: string;
    thread_id: string | null;
    kind: "agent" | "tool";
    agent: string;
    status: "orphaned" | "running" | "interrupted" | "ok" | "error" | "cancelled";
    started: string;
    ended: string | null;
    last_event_id: number;
    output: unknown;
    usage: {
        [key: string]: unknown;
    } | null;
    error: string | null;
    approvals: Array<WaitingCall>;
}
export interface Tool {
    name: string;
    description: string;
    schema: {
        [key: string]: unknown;
    };
    annotations: {
        [key: string]: unknown;
    } | null;
}
/** A progress message of a tool for the user, never for the model. */
export interface NotifyStreamEvent {
    v: 1;
    type: "notify_stream_event";
    id: number;
    seq: number;
    timestamp: string | null;
    source: "agent" | "user" | "environment" | null;
    cause: number | null;
    path: Array<string>;
    tool_name: string | null;
    tool_call_id: string | null;
    data: string;
    is_delta: boolean;
    tag: string | null;
    level: "debug" | "info" | "success" | "warning" | "error";
}
/** The progress of a tool. The latest event of a call replaces the earlier ones. */
export interface ToolProgressEvent {
    v: 1;
    type: "tool_progress_event";
    id: number;
    seq: number;
    timestamp: string | null;
    source: "agent" | "user" | "environment" | null;
    cause: number | null;
    path: Array<string>;
    tool_name: string | null;
    tool_call_id: string | null;
    current: number;
    total: number | null;
    message: string | null;
}
/** A file or text that a tool produces in addition to its result. */
export interface ToolArtifactEvent {
    v: 1;
    type: "tool_artifact_event";
    id: number;
    seq: number;
    timestamp: string | null;
    source: "agent" | "user" | "environment" | null;
    cause: number | null;
    path: Array<string>;
    tool_name: string | null;
    tool_call_id: string | null;
    name: string;
    data: string | {
        encoding: "base64";
        data: string;
    } | null;
    uri: string | null;
    mime_type: string | null;
}
/** The start of a tool call. */
export interface ToolStreamStartEvent {
    v: 1;
    type: "tool_stream_start_event";
    id: number;
    seq: number;
    timestamp: string | null;
    source: "agent" | "user" | "environment" | null;
    cause: number | null;
    path: Array<string>;
    tool_name: string | null;
    tool_call_id: string | null;
    input_args: {
        [key: string]: unknown;
    };
}
/** The end of a tool call; the call emits no events after it. */
export interface ToolStreamEndEvent {
    v: 1;
    type: "tool_stream_end_event";
    id: number;
    seq: number;
    timestamp: string | null;
    source: "agent" | "user" | "environment" | null;
    cause: number | null;
    path: Array<string>;
    tool_name: string | null;
    tool_call_id: string | null;
    status: "ok" | "invalid_args" | "tool_error" | "timeout" | "cancelled" | "denied" | "overloaded" | "lost";
    duration: number;
}
/** A failed attempt of a call that is retried. */
export interface ToolAttemptEvent {
    v: 1;
    type: "tool_attempt_event";
    id: number;
    seq: number;
    timestamp: string | null;
    source: "agent" | "user" | "environment" | null;
    cause: number | null;
    path: Array<string>;
    tool_name: string | null;
    tool_call_id: string | null;
    attempt: number;
    error: string | null;
    delay: number;
}
/** The place where display events were dropped because the consumer was too slow. */
export interface GapEvent {
    v: 1;
    type: "gap_event";
    id: number;
    seq: number;
    timestamp: string | null;
    source: "agent" | "user" | "environment" | null;
    cause: number | null;
    path: Array<string>;
    tool_name: string | null;
    tool_call_id: string | null;
    dropped: number;
}
/** A new item of a run: a message, a tool call or a tool output. */
export interface RunItemStreamEvent {
    v: 1;
    type: "run_item_stream_event";
    id: number;
    seq: number;
    timestamp: string | null;
    source: "agent" | "user" | "environment" | null;
    cause: number | null;
    path: Array<string>;
    tool_name: string | null;
    tool_call_id: string | null;
    name: string;
    item: {
        [key: string]: unknown;
    };
}
/** A part of a streamed model response, as the provider sent it. */
export interface RawResponseStreamEvent {
    v: 1;
    type: "raw_response_event";
    id: number;
    seq: number;
    timestamp: string | null;
    source: "agent" | "user" | "environment" | null;
    cause: number | null;
    path: Array<string>;
    tool_name: string | null;
    tool_call_id: string | null;
    data: unknown;
}
/** Another agent continues the run after a handoff. */
export interface AgentUpdatedStreamEvent {
    v: 1;
    type: "agent_updated_stream_event";
    id: number;
    seq: number;
    timestamp: string | null;
    source: "agent" | "user" | "environment" | null;
    cause: number | null;
    path: Array<string>;
    tool_name: string | null;
    tool_call_id: string | null;
    agent: string;
}
/** The start of a run. */
export interface RunStartedEvent {
    v: 1;
    type: "run_started_event";
    id: number;
    seq: number;
    timestamp: string | null;
    source: "agent" | "user" | "environment" | null;
    cause: number | null;
    path: Array<string>;
    tool_name: string | null;
    tool_call_id: string | null;
    run_id: string | null;
    agent: string | null;
}
/** The end of a run. */
export interface RunFinishedEvent {
    v: 1;
    type: "run_finished_event";
    id: number;
    seq: number;
    timestamp: string | null;
    source: "agent" | "user" | "environment" | null;
    cause: number | null;
    path: Array<string>;
    tool_name: string | null;
    tool_call_id: string | null;
    status: string;
    output: unknown;
    usage: {
        [key: string]: unknown;
    } | null;
    error: string | null;
}
/** A record of the run log that only the library reads. No reader of a run receives it. */
export interface RunRecordEvent {
    v: 1;
    type: "run_record_event";
    id: number;
    seq: number;
    timestamp: string | null;
    source: "agent" | "user" | "environment" | null;
    cause: number | null;
    path: Array<string>;
    tool_name: string | null;
    tool_call_id: string | null;
    name: "run_created" | "model_response" | "call_begun" | "call_remote" | "call_result" | "approval_requested" | "approval_decided" | "input_requested" | "hidden_event";
    data: {
        [key: string]: unknown;
    };
}
/** A message in a conversation. */
export interface MessageEvent {
    v: 1;
    type: "message_event";
    id: number;
    seq: number;
    timestamp: string | null;
    source: "agent" | "user" | "environment" | null;
    cause: number | null;
    path: Array<string>;
    tool_name: string | null;
    tool_call_id: string | null;
    content: unknown;
    role: "user" | "assistant" | "system";
}
/** A summary that a model reads in place of the beginning of its conversation. */
export interface SummaryEvent {
    v: 1;
    type: "summary_event";
    id: number;
    seq: number;
    timestamp: string | null;
    source: "agent" | "user" | "environment" | null;
    cause: number | null;
    path: Array<string>;
    tool_name: string | null;
    tool_call_id: string | null;
    summary: string;
    items: number;
    digest: string;
    usage: {
        [key: string]: unknown;
    } | null;
}
/** A requested action. */
export interface ActionEvent {
    v: 1;
    type: "action_event";
    id: number;
    seq: number;
    timestamp: string | null;
    source: "agent" | "user" | "environment" | null;
    cause: number | null;
    path: Array<string>;
    tool_name: string | null;
    tool_call_id: string | null;
    kind: string;
    action: {
        [key: string]: unknown;
    };
    hidden: boolean;
}
/** The observation of an action; `cause` is the id of the action event. */
export interface ObservationEvent {
    v: 1;
    type: "observation_event";
    id: number;
    seq: number;
    timestamp: string | null;
    source: "agent" | "user" | "environment" | null;
    cause: number | null;
    path: Array<string>;
    tool_name: string | null;
    tool_call_id: string | null;
    kind: string;
    observation: {
        [key: string]: unknown;
    };
    hidden: boolean;
}
/** A change of the state of an agent. */
export interface AgentStateChangedEvent {
    v: 1;
    type: "agent_state_changed_event";
    id: number;
    seq: number;
    timestamp: string | null;
    source: "agent" | "user" | "environment" | null;
    cause: number | null;
    path: Array<string>;
    tool_name: string | null;
    tool_call_id: string | null;
    state: string;
    reason: string;
}
/** An error that does not end the conversation. */
export interface ErrorEvent {
    v: 1;
    type: "error_event";
    id: number;
    seq: number;
    timestamp: string | null;
    source: "agent" | "user" | "environment" | null;
    cause: number | null;
    path: Array<string>;
    tool_name: string | null;
    tool_call_id: string | null;
    message: string;
    kind: string | null;
}
/** An event without a meaning; consumers ignore it. */
export interface NullEvent {
    v: 1;
    type: "null_event";
    id: number;
    seq: number;
    timestamp: string | null;
    source: "agent" | "user" | "environment" | null;
    cause: number | null;
    path: Array<string>;
    tool_name: string | null;
    tool_call_id: string | null;
}
/** An event of agents_tools on the wire, version 1. */
export type RunEvent = NotifyStreamEvent | ToolProgressEvent | ToolArtifactEvent | ToolStreamStartEvent | ToolStreamEndEvent | ToolAttemptEvent | GapEvent | RunItemStreamEvent | RawResponseStreamEvent | AgentUpdatedStreamEvent | RunStartedEvent | RunFinishedEvent | RunRecordEvent | MessageEvent | SummaryEvent | ActionEvent | ObservationEvent | AgentStateChangedEvent | ErrorEvent | NullEvent;
