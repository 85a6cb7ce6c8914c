import { argv, exit } from "node:process";

import * as billing from "./billing_api/billing.js";
import { CallError } from "./billing_api/zlink/index.js";

const servers = argv.slice(2);
const till = billing.client({ connect: servers.length > 0 ? servers : "tcp://127.0.0.1:7001" });
try {
  const receipt = await till.charge({ order: "42", cents: 990n }, { metadata: { tenant: "acme" } });
  console.log(receipt.number);
} catch (error) {
  if (!(error instanceof CallError)) throw error;
  console.error(`${error.message} (${error.execution})`); // whether it may have run
  exit(1);
} finally {
  await till.close();
}
