// ethers 6 as a client of the node at LEANI_HTTP and LEANI_WS.
import { Contract, JsonRpcProvider, WebSocketProvider, id, zeroPadValue } from 'ethers'
import { erc20, failures, pick, say, serve, topics } from './lines.mjs'

// The client remembers answers for a quarter of a second by default; a test asks for what has changed meanwhile.
const options = { cacheTimeout: -1, pollingInterval: 20 }
const provider =
  process.env.LEANI_OVER === 'ws'
    ? new WebSocketProvider(process.env.LEANI_WS, undefined, options)
    : new JsonRpcProvider(process.env.LEANI_HTTP, undefined, options)

const header = (block) =>
  pick(block, 'number', 'hash', 'parentHash', 'timestamp', 'gasUsed', 'gasLimit', 'baseFeePerGas', 'miner', 'extraData', 'stateRoot',
    'receiptsRoot', 'blobGasUsed', 'excessBlobGas', 'parentBeaconBlockRoot', 'nonce', 'difficulty', ['mixHash', 'prevRandao'])

const transaction = (tx) => ({
  ...pick(tx, 'hash', 'blockHash', 'blockNumber', ['transactionIndex', 'index'], 'from', 'to', 'value', ['gas', 'gasLimit'], 'gasPrice',
    'nonce', ['input', 'data'], 'type'),
  ...pick(tx.signature, 'r', 's'),
  ...(tx.type > 0 && { chainId: tx.chainId, yParity: tx.signature.yParity, accessList: tx.accessList }),
  ...(tx.type >= 2 && pick(tx, 'maxFeePerGas', 'maxPriorityFeePerGas')),
  ...(tx.type === 3 && pick(tx, 'maxFeePerBlobGas', 'blobVersionedHashes')),
  ...(tx.type === 4 && {
    authorizationList: tx.authorizationList.map((a) => ({
      ...pick(a, 'address', 'chainId', 'nonce'),
      ...pick(a.signature, 'r', 's', 'yParity'),
    })),
  }),
})

const receiptLog = (l) => pick(l, 'address', 'topics', 'data', 'blockNumber', 'blockHash', 'transactionHash', 'transactionIndex', ['logIndex', 'index'])
const log = (l) => ({ ...receiptLog(l), removed: l.removed })

const receipt = (r) => ({
  ...pick(r, ['transactionHash', 'hash'], ['transactionIndex', 'index'], 'blockHash', 'blockNumber', 'from', 'to', 'contractAddress',
    'cumulativeGasUsed', 'gasUsed', ['effectiveGasPrice', 'gasPrice'], 'logsBloom', 'status'),
  logs: r.logs.map(receiptLog),
  ...(r.type === 3 && pick(r, 'blobGasUsed', 'blobGasPrice')),
})

const block = ({ number, hash, tag }) => hash ?? tag ?? number

/** An error as the application sees it: ethers keeps that of the node as a member. */
function describe(error) {
  const own = error.error ?? error.info?.error
  return { class: error.code, code: own?.code, message: own?.message, data: own?.data ?? null }
}

const topicsOf = ({ events = [], from, to }) =>
  topics([events.map((name) => id(`${name}(address,address,uint256)`)), ...[from, to].map((list) => list?.map((a) => zeroPadValue(a, 32)))])

await serve({
  async network() {
    const network = await provider.getNetwork()
    return {
      chainId: network.chainId,
      blockNumber: await provider.getBlockNumber(),
      syncing: await provider.send('eth_syncing', []),
      netVersion: await provider.send('net_version', []),
      clientVersion: await provider.send('web3_clientVersion', []),
    }
  },
  async block(where) {
    const found = await provider.getBlock(block(where), where.full)
    return { ...header(found), transactions: where.full ? found.prefetchedTransactions.map(transaction) : found.transactions }
  },
  async count(where) {
    return (await provider.getBlock(block(where))).length
  },
  async transaction({ hash, index, number, blockHash }) {
    if (hash) return transaction(await provider.getTransaction(hash))
    return transaction(await (await provider.getBlock(blockHash ?? number)).getTransaction(index))
  },
  async receipt({ hash }) {
    return receipt(await provider.getTransactionReceipt(hash))
  },
  async receipts({ block }) {
    const network = await provider.getNetwork()
    const found = await provider.send('eth_getBlockReceipts', [block])
    return found.map((r) => receipt(provider._wrapTransactionReceipt(r, network)))
  },
  config: () => provider.send('eth_config', []),
  async wait({ hash }) {
    const waiting = provider.waitForTransaction(hash)
    say('waiting')
    return waiting.then(receipt, (error) => ({ error: describe(error) }))
  },
  async logs({ address, fromBlock, toBlock, blockHash, ...topics }) {
    return (await provider.getLogs({ address, topics: topicsOf(topics), ...(blockHash ? { blockHash } : { fromBlock, toBlock }) })).map(log)
  },
  async transfers({ address, fromBlock, toBlock }) {
    const contract = new Contract(address, erc20, provider)
    return (await contract.queryFilter('Transfer', fromBlock, toBlock)).map((l) => ({
      ...pick(l, 'blockNumber', ['logIndex', 'index']),
      ...l.args.toObject(),
    }))
  },
  async fees({ blocks, newest, percentiles }) {
    const history = await provider.send('eth_feeHistory', ['0x' + blocks.toString(16), '0x' + newest.toString(16), percentiles])
    const numbers = (list) => list.map(BigInt)
    return {
      oldestBlock: BigInt(history.oldestBlock),
      baseFeePerGas: numbers(history.baseFeePerGas),
      gasUsedRatio: history.gasUsedRatio,
      reward: history.reward.map(numbers),
    }
  },
  refused: ({ address }) =>
    failures(
      {
        call: () => provider.call({ to: address, data: '0x70a08231' }),
        contract: () => new Contract(address, erc20, provider).balanceOf(address),
        balance: () => provider.getBalance(address),
        code: () => provider.getCode(address),
        storage: () => provider.getStorage(address, 0),
        nonce: () => provider.getTransactionCount(address),
        estimate: () => provider.estimateGas({ to: address, from: address }),
        gasPrice: () => provider.send('eth_gasPrice', []),
        blobFee: () => provider.send('eth_blobBaseFee', []),
        send: () => provider.send('eth_sendRawTransaction', ['0x02']),
      },
      describe,
    ),
  unavailable: ({ below, hash, beyond }) =>
    failures(
      {
        pending: () => provider.getBlock('pending'),
        finalized: () => provider.getBlock('finalized'),
        number: () => provider.getBlock(below),
        hash: () => provider.getBlock(hash),
        transaction: () => provider.getTransaction(hash),
        receipt: () => provider.getTransactionReceipt(hash),
        logs: () => provider.getLogs({ blockHash: hash }),
        range: () => provider.getLogs({ fromBlock: below, toBlock: 'latest' }),
        beyond: () => provider.getLogs({ fromBlock: beyond, toBlock: beyond }),
      },
      describe,
    ),
  tooMany: async ({ fromBlock, toBlock }) =>
    (await failures({ logs: () => provider.getLogs({ fromBlock, toBlock }) }, describe)).logs,
  async watch({ address }) {
    // ethers tells nobody of logs that are removed: it looks which blocks with logs are gone when there is a new block.
    const holding = new Map()
    await provider.on('block', async (number) => {
      say('block', { number })
      for (const [hash, height] of holding) {
        const block = await provider.getBlock(height)
        if (block?.hash !== hash && holding.delete(hash)) say('gone', { hash })
      }
    })
    const contract = new Contract(address, erc20, provider)
    await contract.on('Transfer', (from, to, value, { log: found }) => {
      holding.set(found.blockHash, found.blockNumber)
      say('log', log(found))
    })
    // Over WebSocket it sends the subscriptions and waits for no answer; one connection is answered in order.
    await provider.send('eth_blockNumber', [])
    return null
  },
})
process.exit(0) // sockets of the client would go on
