// What scripts say and hear: objects with one member, one a line. The tests' side is in harness/session.go.
import { createInterface } from 'node:readline'

// Numbers of any size are said as decimal strings, text in lower case, and what a client leaves undefined as "absent".
function plain(value) {
  switch (typeof value) {
    case 'bigint':
    case 'number':
      return value.toString()
    case 'string':
      return value.toLowerCase()
    case 'undefined':
      return 'absent'
    case 'object':
      if (Array.isArray(value)) return value.map(plain)
      if (value) return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, plain(member)]))
  }
  return value
}

/** Says something: the name of the message and its value. */
export function say(name, value = null) {
  process.stdout.write(JSON.stringify({ [name]: plain(value) }) + '\n')
}

/**
 * Says that it is ready, calls the handler of each message that comes, one after the other, and says what that gives under
 * the same name, unless it is undefined. It ends when there are no more.
 */
export async function serve(handlers) {
  say('ready')
  for await (const line of createInterface({ input: process.stdin })) {
    const [[name, value]] = Object.entries(JSON.parse(line))
    if (!handlers[name]) throw new Error(`nobody handles ${name}`)
    const answer = await handlers[name](value)
    if (answer !== undefined) say(name, answer)
  }
}

/** Waits for what a client tells nobody. */
export async function until(condition) {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 1))
}

/** Takes some members of an object; a pair takes a member under another name. */
export function pick(object, ...members) {
  if (!object) return object
  return Object.fromEntries(
    members.map((member) => (Array.isArray(member) ? [member[0], object[member[1]]] : [member, object[member]])),
  )
}

/** Calls each function, which has to fail, and gives what describe says of the errors; a value stands as it is. */
export async function failures(calls, describe) {
  const out = {}
  for (const [name, call] of Object.entries(calls)) {
    out[name] = await call().then((value) => ({ value: value === undefined ? 'absent' : value }), describe)
  }
  return out
}

/** Topics of a log query: null where any will do. A position asks for a log that has it, so there are no nulls at the end. */
export function topics(positions) {
  const last = positions.findLastIndex((list) => list?.length)
  return positions.slice(0, last + 1).map((list) => (list?.length ? list : null))
}

/** The members of ERC-20 that the tests need. */
export const erc20 = [
  {
    type: 'event',
    name: 'Transfer',
    inputs: [
      { name: 'from', type: 'address', indexed: true },
      { name: 'to', type: 'address', indexed: true },
      { name: 'value', type: 'uint256', indexed: false },
    ],
  },
  {
    type: 'event',
    name: 'Approval',
    inputs: [
      { name: 'owner', type: 'address', indexed: true },
      { name: 'spender', type: 'address', indexed: true },
      { name: 'value', type: 'uint256', indexed: false },
    ],
  },
  {
    type: 'function',
    name: 'balanceOf',
    stateMutability: 'view',
    inputs: [{ name: 'owner', type: 'address' }],
    outputs: [{ name: '', type: 'uint256' }],
  },
]
