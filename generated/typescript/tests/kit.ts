// What tests share.

import { fileURLToPath } from "node:url";

/** A file of the repository. */
export function repository(path: string): string {
  return `${process.env["ZLINK_REPOSITORY"] ?? fileURLToPath(new URL("../../../../", import.meta.url))}/${path}`;
}
