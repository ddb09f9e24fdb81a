// A Subsquid processor that follows the token LEANI_TOKEN at the node LEANI_RPC, without an archive.
import { EvmBatchProcessor } from '@subsquid/evm-processor'
import { serve } from '../lines.mjs'
import { MemoryDatabase } from './database.mjs'

const { LEANI_RPC, LEANI_TOKEN, LEANI_CONFIRMATIONS } = process.env
const transfer = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
const database = new MemoryDatabase('heads', 'transfers', 'accounts')

// The processor says nowhere that it has subscribed, so its RPC client is listened to.
let subscriptions = 0
let waiting = []
function listen(client) {
  if (Object.hasOwn(client, 'call')) return
  client.call = async (method, ...rest) => {
    const answer = await Object.getPrototypeOf(client).call.call(client, method, ...rest)
    if (method === 'eth_subscribe') {
      subscriptions++
      waiting = waiting.filter(({ count, resolve }) => subscriptions < count || resolve())
    }
    return answer
  }
}

const address = (topic) => '0x' + topic.slice(26)

new EvmBatchProcessor()
  .setRpcEndpoint({ url: LEANI_RPC })
  .setRpcDataIngestionSettings({ headPollInterval: 20 })
  .setPrometheusPort({ host: '127.0.0.1', port: 0 }) // what listen of Node.js takes
  .setFinalityConfirmation(Number(LEANI_CONFIRMATIONS))
  .setFields({ block: { timestamp: true }, log: { topics: true, data: true, transactionHash: true } })
  .includeAllBlocks()
  .addLog({ address: [LEANI_TOKEN], topic0: [transfer] })
  .run(database, async ({ _chain, store, blocks }) => {
    listen(_chain.client)
    const add = (account, amount) => store.set('accounts', account, (store.get('accounts', account) ?? 0n) + amount)
    for (const { header, logs } of blocks) {
      store.set('heads', header.height, header.hash)
      for (const log of logs) {
        // In a transaction that other things are asked of there may be logs that are not.
        if (log.address !== LEANI_TOKEN || log.topics[0] !== transfer || log.topics.length !== 3) continue
        const [, from, to] = log.topics.map(address)
        const value = BigInt(log.data)
        store.set('transfers', log.id, {
          block: header.height,
          blockHash: header.hash,
          timestamp: header.timestamp / 1000,
          transaction: log.transactionHash,
          logIndex: log.logIndex,
          from,
          to,
          value,
        })
        add(from, -value)
        add(to, value)
      }
    }
  })

await serve({
  subscribed: async (count) => {
    if (subscriptions < count) await new Promise((resolve) => waiting.push({ count, resolve }))
    return true
  },
  reached: async (hash) => {
    await database.reached(hash)
    return true
  },
  rows: () => ({
    heads: [...database.tables.heads.entries()],
    transfers: [...database.tables.transfers.values()],
    accounts: Object.fromEntries(database.tables.accounts),
    undone: database.undone,
  }),
})
process.exit(0) // the processor would go on
