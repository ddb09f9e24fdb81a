import { onchainTable } from "ponder";

export const transfer = onchainTable("transfer", (t) => ({
  id: t.text().primaryKey(),
  block: t.integer().notNull(),
  blockHash: t.hex().notNull(),
  timestamp: t.bigint().notNull(),
  transaction: t.hex().notNull(),
  logIndex: t.integer().notNull(),
  from: t.hex().notNull(),
  to: t.hex().notNull(),
  value: t.bigint().notNull(),
}));

/** What is computed of many transfers: a transfer that is undone has to be taken out of it again. */
export const account = onchainTable("account", (t) => ({
  address: t.hex().primaryKey(),
  balance: t.bigint().notNull(),
}));

export const head = onchainTable("head", (t) => ({
  number: t.integer().primaryKey(),
  hash: t.hex().notNull(),
}));
