// What applications import, and what generated code is written in.

export * from "./channel.js";
export * from "./codec.js";
export * from "./errors.js";
export * from "./metadata.js";
export { Reader, Table } from "./reader.js";
export { MAX_BYTES, MAX_DEPTH, MAX_TABLES, Writer } from "./writer.js";
