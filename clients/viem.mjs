// viem 2 as a client of the node at LEANI_HTTP and LEANI_WS.
import { createPublicClient, formatTransactionReceipt, http, parseEventLogs, webSocket } from 'viem'
import { getLogsRetryHelper } from '@ponder/utils'
import { erc20, failures, pick, say, serve, until } from './lines.mjs'

// The methods that were called over HTTP: whoever polls tells nobody when it has begun.
const called = new Set()
let polled // the filter that was asked for changes
const onFetchRequest = (_, { body }) => {
  const { method, params } = JSON.parse(body)
  called.add(method)
  if (method === 'eth_getFilterChanges') polled = params[0]
}

// By itself viem repeats calls that a limit ends.
const retryCount = 0
const overHTTP = createPublicClient({ transport: http(process.env.LEANI_HTTP, { onFetchRequest, retryCount }), pollingInterval: 20 })
const overWebSocket = createPublicClient({ transport: webSocket(process.env.LEANI_WS, { retryCount }) })
const client = process.env.LEANI_OVER === 'ws' ? overWebSocket : overHTTP

const [transfer, approval] = erc20
const number = (n) => (n === undefined ? undefined : BigInt(n))

const header = (block) =>
  pick(block, 'number', 'hash', 'parentHash', 'timestamp', 'gasUsed', 'gasLimit', 'baseFeePerGas', 'miner', 'extraData', 'logsBloom',
    'stateRoot', 'transactionsRoot', 'receiptsRoot', 'withdrawalsRoot', 'parentBeaconBlockRoot', 'blobGasUsed', 'excessBlobGas',
    'sha3Uncles', 'mixHash', 'nonce', 'difficulty')

const transaction = (tx) => ({
  ...pick(tx, 'hash', 'blockHash', 'blockNumber', 'transactionIndex', 'from', 'to', 'value', 'gas', 'gasPrice', 'nonce', 'input',
    'v', 'r', 's'),
  type: Number(tx.typeHex),
  ...(tx.type !== 'legacy' && { ...pick(tx, 'chainId', 'yParity'), accessList: tx.accessList }),
  ...(['eip1559', 'eip4844', 'eip7702'].includes(tx.type) && pick(tx, 'maxFeePerGas', 'maxPriorityFeePerGas')),
  ...(tx.type === 'eip4844' && pick(tx, 'maxFeePerBlobGas', 'blobVersionedHashes')),
  ...(tx.type === 'eip7702' && {
    authorizationList: tx.authorizationList.map((a) => pick(a, 'address', 'chainId', 'nonce', 'r', 's', 'yParity')),
  }),
})

const log = (l) => pick(l, 'address', 'topics', 'data', 'blockNumber', 'blockHash', 'blockTimestamp', 'transactionHash', 'transactionIndex', 'logIndex', 'removed')

const receipt = (r) => ({
  ...pick(r, 'transactionHash', 'transactionIndex', 'blockHash', 'blockNumber', 'from', 'to', 'contractAddress', 'cumulativeGasUsed',
    'gasUsed', 'effectiveGasPrice', 'logsBloom'),
  status: r.status === 'success' ? 1 : 0,
  logs: r.logs.map(log),
  ...(r.type === 'eip4844' && pick(r, 'blobGasUsed', 'blobGasPrice')),
})

const block = (where) => ({ blockNumber: number(where.number), blockHash: where.hash, blockTag: where.tag })

/** An error as the application sees it: viem wraps that of the node, and walk finds it. */
function describe(error) {
  const own = error.walk((e) => e?.code !== undefined)
  return { class: own?.name, code: own?.code, message: own?.details, data: own?.walk((e) => e?.data !== undefined)?.data ?? null }
}

const filterOf = ({ address, events = [], from, to, fromBlock, toBlock, blockHash }) => ({
  address,
  ...(events.length === 1 && { event: { Transfer: transfer, Approval: approval }[events[0]], args: { from, to } }),
  ...(events.length > 1 && { events: events.map((name) => ({ Transfer: transfer, Approval: approval })[name]) }),
  ...(blockHash ? { blockHash } : { fromBlock: number(fromBlock), toBlock: number(toBlock) }),
})

/** Asks for logs as Ponder does: what is too much at once is split as the error says. */
async function split(request, asked) {
  asked.push([request.fromBlock, request.toBlock])
  try {
    return await client.request({ method: 'eth_getLogs', params: [request] })
  } catch (error) {
    const retry = getLogsRetryHelper({ params: [request], error })
    if (!retry.shouldRetry || !retry.isSuggestedRange) throw error
    const parts = []
    for (const range of retry.ranges) parts.push(...(await split({ ...request, ...range }, asked)))
    return parts
  }
}

const filters = new Map()
const watching = []

await serve({
  async network() {
    return {
      chainId: await client.getChainId(),
      blockNumber: await client.getBlockNumber({ cacheTime: 0 }),
      syncing: await client.request({ method: 'eth_syncing' }),
      netVersion: await client.request({ method: 'net_version' }),
      clientVersion: await client.request({ method: 'web3_clientVersion' }),
    }
  },
  async block(where) {
    const found = await client.getBlock({ ...block(where), includeTransactions: where.full })
    return {
      ...header(found),
      size: found.size,
      withdrawals: found.withdrawals.map(({ address, ...numbers }) => ({
        address,
        ...Object.fromEntries(Object.entries(numbers).map(([name, value]) => [name, BigInt(value)])),
      })),
      uncles: found.uncles,
      transactions: where.full ? found.transactions.map(transaction) : found.transactions,
    }
  },
  count: (where) => client.getBlockTransactionCount(block(where)),
  async transaction({ hash, index, ...where }) {
    return transaction(await client.getTransaction(hash ? { hash } : { ...block({ ...where, hash: where.blockHash }), index }))
  },
  async receipt({ hash }) {
    return receipt(await client.getTransactionReceipt({ hash }))
  },
  async receipts({ block }) {
    const found = await client.request({ method: 'eth_getBlockReceipts', params: [block] })
    return found.map((r) => receipt(formatTransactionReceipt(r)))
  },
  config: () => client.request({ method: 'eth_config' }),
  async wait({ hash }) {
    const waiting = client.waitForTransactionReceipt({ hash, pollingInterval: 20, retryCount })
    await until(() => called.has('eth_getTransactionReceipt'))
    say('waiting')
    return waiting.then(receipt, (error) => ({ error: describe(error) }))
  },
  async logs(filter) {
    return (await client.getLogs(filterOf(filter))).map(log)
  },
  async transfers({ address, fromBlock, toBlock }) {
    const found = await client.getLogs({ address, fromBlock: number(fromBlock), toBlock: number(toBlock) })
    return parseEventLogs({ abi: erc20, eventName: 'Transfer', logs: found }).map((l) => ({
      ...pick(l, 'blockNumber', 'logIndex'),
      ...pick(l.args, 'from', 'to', 'value'),
    }))
  },
  async fees({ blocks, newest, percentiles }) {
    const history = await client.getFeeHistory({ blockCount: blocks, blockNumber: number(newest), rewardPercentiles: percentiles })
    return pick(history, 'oldestBlock', 'baseFeePerGas', 'gasUsedRatio', 'reward')
  },
  refused: ({ address }) =>
    failures(
      {
        call: () => client.call({ to: address, data: '0x70a08231' }),
        contract: () => client.readContract({ address, abi: erc20, functionName: 'balanceOf', args: [address] }),
        balance: () => client.getBalance({ address }),
        code: () => client.getCode({ address }),
        storage: () => client.getStorageAt({ address, slot: '0x0' }),
        nonce: () => client.getTransactionCount({ address }),
        estimate: () => client.estimateGas({ to: address, account: address }),
        gasPrice: () => client.getGasPrice(),
        blobFee: () => client.getBlobBaseFee(),
        send: () => client.sendRawTransaction({ serializedTransaction: '0x02' }),
      },
      describe,
    ),
  unavailable: ({ below, hash, beyond }) =>
    failures(
      {
        pending: () => client.getBlock({ blockTag: 'pending' }),
        finalized: () => client.getBlock({ blockTag: 'finalized' }),
        number: () => client.getBlock({ blockNumber: number(below) }),
        hash: () => client.getBlock({ blockHash: hash }),
        transaction: () => client.getTransaction({ hash }),
        receipt: () => client.getTransactionReceipt({ hash }),
        logs: () => client.getLogs({ blockHash: hash }),
        range: () => client.getLogs({ fromBlock: number(below), toBlock: 'latest' }),
        beyond: () => client.getLogs({ fromBlock: number(beyond), toBlock: number(beyond) }),
      },
      describe,
    ),
  tooMany: async ({ fromBlock, toBlock }) =>
    (await failures({ logs: () => client.getLogs({ fromBlock: number(fromBlock), toBlock: number(toBlock) }) }, describe)).logs,
  async split(request) {
    const asked = []
    const found = await split(request, asked)
    return { asked, logs: found.map((l) => [BigInt(l.blockNumber), BigInt(l.logIndex)]) }
  },
  async filter({ name, address }) {
    filters.set(name, await (address ? client.createEventFilter({ address }) : client.createBlockFilter()))
    return null
  },
  async poll({ name }) {
    const changes = await client.getFilterChanges({ filter: filters.get(name) })
    return changes.map((change) => (typeof change === 'string' ? change : log(change)))
  },
  async forget({ name }) {
    const filter = filters.get(name)
    const uninstalled = await client.uninstallFilter({ filter })
    return { uninstalled, ...(await failures({ after: () => client.getFilterChanges({ filter }) }, describe)) }
  },
  async watch({ transport, address }) {
    called.clear()
    const watcher = transport === 'ws' ? overWebSocket : overHTTP
    const onError = (error) => say('error', describe(error))
    watching.push(
      watcher.watchBlocks({ onBlock: (b) => say('block', header(b)), onError, emitMissed: true }),
      watcher.watchEvent({ address, event: transfer, onLogs: (logs) => logs.forEach((l) => say('log', log(l))), onError }),
    )
    if (transport === 'ws') {
      const { subscriptions } = await watcher.transport.getRpcClient()
      await until(() => subscriptions.size === watching.length)
    } else {
      await until(() => called.has('eth_getFilterChanges'))
    }
    return null
  },
  /** Makes the node forget the filter that watchEvent polls, and waits until there is another one. */
  async lose() {
    called.clear()
    const lost = polled
    await client.request({ method: 'eth_uninstallFilter', params: [lost] })
    await until(() => called.has('eth_newFilter') && polled !== lost)
    return null
  },
})
process.exit(0) // timers and sockets of the client would go on
