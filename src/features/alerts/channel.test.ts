import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AlertMessage } from './message.ts'
import { REAL_CLOCK } from '../../core/host/clock.ts'
import { ChannelQueue, type Channel } from './channel.ts'

const message = (key: string): AlertMessage => ({
  event: 'raised',
  key,
  alert: { cause: key, rule: 'dead', source: null, run: null, because: '', command: '', since: 0 },
  link: null,
})

test('at most a hundred messages queue for a channel; further ones are rejected at once', async () => {
  const gate = Promise.withResolvers<void>()
  const taken: string[] = []
  const channel: Channel = {
    name: 'slack',
    destination: 'slack 1',
    send: async ({ key }) => {
      await gate.promise
      taken.push(key)
    },
  }
  const outlet = new ChannelQueue(channel, REAL_CLOCK, () => {})
  const waiting = Array.from({ length: 100 }, (_, n) => outlet.send(message(`m${n}`)))
  assert.equal(await outlet.send(message('too many')), false)
  gate.resolve()
  assert.deepEqual(new Set(await Promise.all(waiting)), new Set([true]))
  assert.equal(taken.length, 100)
  assert.equal(await outlet.send(message('later')), true)
  await outlet.stop()
  assert.equal(await outlet.send(message('too late')), false)
})

test('a foreign error is reported without its message', async () => {
  const logs: string[] = []
  const channel: Channel = {
    name: 'webhook',
    destination: 'webhook 1',
    send: () => Promise.reject(new Error('connect to https://canary failed')),
  }
  const clock = { ...REAL_CLOCK, sleep: async () => {} }
  const outlet = new ChannelQueue(channel, clock, (text) => logs.push(text))
  assert.equal(await outlet.send(message('m')), false)
  assert.deepEqual(logs, ['alerts: webhook did not take a message: it failed. It is tried again'])
})
