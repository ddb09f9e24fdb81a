import { ponder } from "ponder:registry";
import { account, head, transfer } from "ponder:schema";

ponder.on("Token:Transfer", async ({ event, context }) => {
  const { from, to, value } = event.args;
  await context.db.insert(transfer).values({
    id: event.id,
    block: Number(event.block.number),
    blockHash: event.block.hash,
    timestamp: event.block.timestamp,
    transaction: event.transaction.hash,
    logIndex: event.log.logIndex,
    from,
    to,
    value,
  });
  const add = (address: `0x${string}`, amount: bigint) =>
    context.db
      .insert(account)
      .values({ address, balance: amount })
      .onConflictDoUpdate((row) => ({ balance: row.balance + amount }));
  await add(from, -value);
  await add(to, value);
});

ponder.on("Head:block", async ({ event, context }) => {
  await context.db.insert(head).values({ number: Number(event.block.number), hash: event.block.hash });
});
