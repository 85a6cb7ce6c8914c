import asyncio
import sys

from billing_api import billing
from billing_api.zlink import CallError

SERVER = "tcp://127.0.0.1:7001"


async def main(*servers: str) -> None:
    async with billing.BillingClient(*servers) as till:
        charge = billing.Charge(order="42", cents=990)
        try:
            receipt = await till.charge(charge, metadata={"tenant": "acme"})
        except CallError as error:  # `error.execution` tells whether it may have run
            sys.exit(f"{error} ({error.execution.name})")
        print(receipt.number)


asyncio.run(main(*sys.argv[1:] or [SERVER]))
