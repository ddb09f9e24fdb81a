// What scripts say and hear: objects with one member, one a line. The tests' side is in harness/session.go.
import { createInterface } from 'node:readline'

// Numbers of any size go as decimal strings.
const plain = (_, value) => (typeof value === 'bigint' ? value.toString() : value)

/** Says something: the name of the message and its value. */
export function say(name, value = null) {
  process.stdout.write(JSON.stringify({ [name]: value }, plain) + '\n')
}

/** Calls the handler of each message that comes, one after the other, and ends when there are no more. */
export async function serve(handlers) {
  for await (const line of createInterface({ input: process.stdin })) {
    const [[name, value]] = Object.entries(JSON.parse(line))
    if (!handlers[name]) throw new Error(`nobody handles ${name}`)
    say(name, await handlers[name](value))
  }
}
