// web3 4 as a client of the node at LEANI_HTTP and LEANI_WS.
import { Web3 } from 'web3'
import { erc20, failures, pick, say, serve, topics } from './lines.mjs'

const web3 = new Web3(process.env.LEANI_OVER === 'ws' ? process.env.LEANI_WS : process.env.LEANI_HTTP)
const { eth } = web3

const header = (block) =>
  pick(block, 'number', 'hash', 'parentHash', 'timestamp', 'gasUsed', 'gasLimit', 'baseFeePerGas', 'miner', 'extraData', 'logsBloom',
    'stateRoot', 'transactionsRoot', 'receiptsRoot', 'sha3Uncles', 'mixHash', 'difficulty')

const transaction = (tx) => ({
  ...pick(tx, 'hash', 'blockHash', 'blockNumber', 'transactionIndex', 'from', 'value', 'gas', 'gasPrice', 'nonce', 'input', 'type', 'v',
    'r', 's'),
  to: tx.to ?? null, // it leaves out what is null
  ...(tx.type > 0 && pick(tx, 'chainId', 'accessList')),
  ...(tx.type >= 2 && pick(tx, 'maxFeePerGas', 'maxPriorityFeePerGas')),
})

const log = (l) => pick(l, 'address', 'topics', 'data', 'blockNumber', 'blockHash', 'transactionHash', 'transactionIndex', 'logIndex', 'removed')

const receipt = (r) => ({
  ...pick(r, 'transactionHash', 'transactionIndex', 'blockHash', 'blockNumber', 'from', 'cumulativeGasUsed', 'gasUsed',
    'effectiveGasPrice', 'logsBloom', 'status'),
  to: r.to ?? null,
  contractAddress: r.contractAddress ?? null,
  logs: r.logs.map(log),
})

const block = ({ number, hash, tag }) => hash ?? tag ?? number

/** An error as the application sees it: web3 keeps that of the node as its cause. */
function describe(error) {
  const own = error.cause
  return { class: error.name, code: own?.code, message: own?.message, data: own?.data ?? null }
}

const { padLeft, sha3 } = web3.utils
const topicsOf = ({ events = [], from, to }) =>
  topics([events.map((name) => sha3(`${name}(address,address,uint256)`)), ...[from, to].map((list) => list?.map((a) => padLeft(a.toLowerCase(), 64)))])

await serve({
  async network() {
    return {
      chainId: await eth.getChainId(),
      blockNumber: await eth.getBlockNumber(),
      syncing: await eth.isSyncing(),
      netVersion: await eth.net.getId(),
      clientVersion: await eth.getNodeInfo(),
    }
  },
  async block(where) {
    const found = await eth.getBlock(block(where), where.full)
    return {
      ...header(found),
      size: found.size,
      withdrawals: found.withdrawals,
      uncles: found.uncles ?? [],
      transactions: where.full ? found.transactions.map(transaction) : found.transactions,
    }
  },
  count: (where) => eth.getBlockTransactionCount(block(where)),
  async transaction({ hash, index, number, blockHash }) {
    return transaction(await (hash ? eth.getTransaction(hash) : eth.getTransactionFromBlock(blockHash ?? number, index)))
  },
  async receipt({ hash }) {
    return receipt(await eth.getTransactionReceipt(hash))
  },
  async logs({ address, fromBlock, toBlock, blockHash, ...topics }) {
    const range = blockHash ? { blockHash } : { fromBlock, toBlock }
    return (await eth.getPastLogs({ ...(address && { address }), topics: topicsOf(topics), ...range })).map(log)
  },
  async transfers({ address, fromBlock, toBlock }) {
    const contract = new eth.Contract(erc20, address)
    return (await contract.getPastEvents('Transfer', { fromBlock, toBlock })).map((e) => ({
      ...pick(e, 'blockNumber', 'logIndex'),
      ...pick(e.returnValues, 'from', 'to', 'value'),
    }))
  },
  async fees({ blocks, newest, percentiles }) {
    const history = await eth.getFeeHistory(blocks, newest, percentiles)
    // It leaves rewards as the node wrote them.
    return { ...pick(history, 'oldestBlock', 'baseFeePerGas', 'gasUsedRatio'), reward: history.reward.map((list) => list.map(BigInt)) }
  },
  refused: ({ address }) =>
    failures(
      {
        call: () => eth.call({ to: address, data: '0x70a08231' }),
        contract: () => new eth.Contract(erc20, address).methods.balanceOf(address).call(),
        balance: () => eth.getBalance(address),
        code: () => eth.getCode(address),
        storage: () => eth.getStorageAt(address, 0),
        nonce: () => eth.getTransactionCount(address),
        estimate: () => eth.estimateGas({ to: address, from: address }),
        gasPrice: () => eth.getGasPrice(),
        blobFee: () => web3.requestManager.send({ method: 'eth_blobBaseFee', params: [] }),
        send: () => web3.requestManager.send({ method: 'eth_sendRawTransaction', params: ['0x02'] }),
      },
      describe,
    ),
  unavailable: ({ below, hash, beyond }) =>
    failures(
      {
        pending: () => eth.getBlock('pending'),
        finalized: () => eth.getBlock('finalized'),
        number: () => eth.getBlock(below),
        hash: () => eth.getBlock(hash),
        transaction: () => eth.getTransaction(hash),
        receipt: () => eth.getTransactionReceipt(hash),
        logs: () => eth.getPastLogs({ blockHash: hash }),
        range: () => eth.getPastLogs({ fromBlock: below, toBlock: 'latest' }),
        beyond: () => eth.getPastLogs({ fromBlock: beyond, toBlock: beyond }),
      },
      describe,
    ),
  tooMany: async ({ fromBlock, toBlock }) => (await failures({ logs: () => eth.getPastLogs({ fromBlock, toBlock }) }, describe)).logs,
  async watch({ address }) {
    const heads = await eth.subscribe('newBlockHeaders')
    heads.on('data', (head) => say('block', header({ ...head })))
    heads.on('error', (error) => say('error', error.message))
    const logs = await eth.subscribe('logs', { address, topics: topicsOf({ events: ['Transfer'] }) })
    logs.on('data', (l) => say('log', log(l)))
    logs.on('error', (error) => say('error', error.message))
    return null
  },
})
process.exit(0) // sockets of the client would go on
