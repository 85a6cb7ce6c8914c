// What can go wrong, as a caller must tell it apart. It must not know sockets, records or messages.

/** The kinds of failures, with their numbers on the wire. Names and numbers are the same in every language. */
export const ErrorKinds = {
  /** The target, handler, path or membership does not exist. */
  NotFound: 0,
  /** An exclusive create met an existing object, or an identity clashed. */
  AlreadyExists: 1,
  /** The identity exists with another kind or type. */
  TypeMismatch: 2,
  /** A needed role, handler or store is not registered in this process. */
  NotConfigured: 3,
  /** A filter or an admission policy refused it. */
  Rejected: 4,
  /** The target is known but cannot be used now. */
  Unavailable: 5,
  /** A bounded resource of the reporting runtime, or placement, is full. */
  CapacityExceeded: 6,
  /** The condition for completion was not met in time. */
  DeadlineExceeded: 7,
  /** This side, or the target, admits nothing any more. */
  ShuttingDown: 8,
  /** A record, payload, reply or link contract could not be used. */
  ProtocolError: 9,
  /** Wrong use in the present state. */
  InvalidOperation: 10,
  /** A published relocation payload is missing or damaged. */
  DataLost: 11,
  /** The framework, a handler or a worker failed. */
  InternalFailure: 12,
} as const;

/** The category of a failure. */
export type ErrorKind = keyof typeof ErrorKinds;

const kindsByNumber = Object.keys(ErrorKinds) as ErrorKind[];

/** The kind with that number on the wire, if there is one. */
export function errorKind(number: number): ErrorKind | undefined {
  return kindsByNumber[number];
}

/**
 * Whether a failed call ran at its target: `NotExecuted`, no handler ran and none will; `Unknown`, one may have run, may
 * be running, or may run later. It states a fact; it is no advice to repeat.
 */
export type Execution = "NotExecuted" | "Unknown";

/** A call that failed. Cancellation is none: a cancelled call rejects with the reason of its signal. */
export class CallError extends Error {
  override readonly name: string = "CallError";
  /** Its category. */
  readonly kind: ErrorKind;
  /** Whether the work ran. */
  readonly execution: Execution;

  constructor(kind: ErrorKind, execution: Execution, message: string, options?: ErrorOptions) {
    super(`${kind}: ${message}`, options);
    this.kind = kind;
    this.execution = execution;
  }
}

/** A call or a client was made wrongly; nothing left the process. It has no kind. */
export class ArgumentError extends Error {
  override readonly name: string = "ArgumentError";
  /** What is wrong: `message`, `metadata`, `timeoutMs`, …. */
  readonly argument: string;

  constructor(argument: string, problem: string, options?: ErrorOptions) {
    super(`${argument}: ${problem}`, options);
    this.argument = argument;
  }
}

abstract class CodecError extends Error {
  /** The path of the field at fault, `order.lines[3].name`; empty where it is the message as a whole. */
  readonly field: string;
  /** What is wrong with it. */
  readonly problem: string;

  constructor(problem: string, field: string) {
    super(field === "" ? `the message ${problem}` : `${field} ${problem}`);
    this.field = field;
    this.problem = problem;
  }
}

/** A value that cannot be encoded as its schema demands. */
export class EncodeError extends CodecError {
  override readonly name: string = "EncodeError";

  constructor(problem: string, field = "") {
    super(problem, field);
  }
}

/** Bytes that are not the message they are read as. */
export class DecodeError extends CodecError {
  override readonly name: string = "DecodeError";

  constructor(problem: string, field = "") {
    super(problem, field);
  }
}

/** The same error one step further out: a field, or an item of a list. Other errors stay as they are. */
export function inside(error: unknown, step: string | number): unknown {
  if (!(error instanceof EncodeError || error instanceof DecodeError)) return error;
  const inner = error.field === "" || error.field.startsWith("[") ? error.field : `.${error.field}`;
  const field = typeof step === "number" ? `[${step}]${inner}` : `${step}${inner}`;
  return error instanceof EncodeError ? new EncodeError(error.problem, field) : new DecodeError(error.problem, field);
}
