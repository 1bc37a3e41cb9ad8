import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { describe, test } from 'node:test'
import { httpSink } from '../../testing/test-receivers.ts'
import { DeliveryError } from './channel.ts'
import { isPublic, postJson, type IpAddress, type WebhookSettings } from './post.ts'

const NEVER = new AbortController().signal
const CANARY = 'T0/B0/s3cret-canary'

/** Why it was not taken; null when it was. */
async function sendError(
  hook: Partial<WebhookSettings> & { url: string },
  signal = NEVER,
): Promise<string | null> {
  try {
    await postJson({ allowPrivate: false, allowHttp: false, ...hook }, '{}', {}, signal)
    return null
  } catch (error) {
    assert.ok(error instanceof DeliveryError, String(error))
    assert.doesNotMatch(error.message, /canary|hook\.example/)
    assert.equal(error.cause, undefined)
    return error.message
  }
}

const NOT_PUBLIC = [
  '127.0.0.1',
  '127.9.9.9',
  '0.0.0.0',
  '10.1.2.3',
  '100.64.0.1',
  '100.127.255.255',
  '169.254.169.254',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '192.0.0.170',
  '198.18.0.1',
  '168.63.129.16',
  '224.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '::ffff:127.0.0.1',
  '::ffff:8.8.8.8',
  '::7f00:1',
  '64:ff9b::7f00:1',
  'fc00::1',
  'fd00:ec2::254',
  'fe80::1',
  'fe80::1%eth0',
  'ff02::1',
  '2002:7f00:1::',
  '2001::1',
  '2001:db8::1',
  'localhost',
]

test('non-public addresses are recognised', () => {
  for (const address of NOT_PUBLIC) assert.equal(isPublic(address), false, address)
  for (const address of ['8.8.8.8', '1.1.1.1', '172.32.0.1', '100.128.0.1', '2606:4700::1111'])
    assert.equal(isPublic(address), true, address)
})

/** 127.0.0.1 in disguise. */
const DISGUISES = [
  'https://127.0.0.1/',
  'https://2130706433/',
  'https://0x7f000001/',
  'https://0x7f.1/',
  'https://0177.0.0.1/',
  'https://017700000001/',
  'https://127.1/',
  'https://0/',
  'https://[::1]/',
  'https://[::ffff:7f00:1]/',
  'https://[::ffff:169.254.169.254]/',
  'https://１２７.0.0.1/',
  'https://169.254.169.254/latest/meta-data/',
  'https://[fd00:ec2::254]/',
]
for (const url of DISGUISES) {
  test(`${url} is refused before anything is sent`, async () => {
    assert.match((await sendError({ url })) ?? '', /not on the public internet/)
  })
}

describe('a hook', { concurrency: true }, () => {
  test('by a name that leads to a private address is refused, also if another one is public', async () => {
    for (const addresses of [
      ['127.0.0.1'],
      ['93.184.215.14', '10.0.0.1'],
      ['::1', '2606:4700::1'],
    ]) {
      const resolve = async (): Promise<IpAddress[]> =>
        addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
      assert.match(
        (await sendError({ url: 'https://hook.example/', resolve })) ?? '',
        /not on the public/,
      )
    }
  })

  test('is looked up once and reached at the address that was checked, so that no name can lead elsewhere', async () => {
    await using sink = await httpSink()
    let asked = 0
    // Here for the first who asks, elsewhere for all others.
    const resolve = async (): Promise<IpAddress[]> => [
      { address: asked++ === 0 ? '127.0.0.1' : '127.0.0.2', family: 4 },
    ]
    const url = `http://hook.example:${sink.port}/x?y=1`
    assert.equal(await sendError({ url, resolve, allowPrivate: true, allowHttp: true }), null)
    assert.equal(asked, 1)
    assert.equal(sink.received[0]!.path, '/x?y=1')
    assert.equal(sink.received[0]!.headers.host, `hook.example:${sink.port}`)
  })

  test('over plain http is refused unless it was allowed', async () => {
    await using sink = await httpSink()
    assert.match((await sendError({ url: sink.url, allowPrivate: true })) ?? '', /not https/)
    assert.match((await sendError({ url: sink.url, allowHttp: true })) ?? '', /not on the public/)
    assert.match(
      (await sendError({ url: 'file:///etc/passwd', allowHttp: true })) ?? '',
      /not https/,
    )
    assert.deepEqual(sink.received, [])
  })

  test('that redirects is not followed, and its response is never shown', async () => {
    await using sink = await httpSink()
    await using elsewhere = await httpSink()
    const url = `${sink.url}/${CANARY}`
    const allowed = { url, allowPrivate: true, allowHttp: true }
    for (const status of [301, 302, 307, 308]) {
      sink.reply = { status, headers: { location: elsewhere.url } }
      assert.match((await sendError(allowed)) ?? '', /a redirect, which is not followed/)
    }
    sink.reply = { status: 500, body: 'the canary sings' }
    assert.equal(await sendError(allowed), 'it answered 500')
    assert.deepEqual(elsewhere.received, [])
  })

  test('with an answer that does not end is read no further than 64 KB', async () => {
    const left = Promise.withResolvers<number>()
    const server = createServer((_, response) => {
      const body = Readable.from(endless(), { highWaterMark: 1 })
      body.pipe(response.writeHead(200))
      response.once('close', () => left.resolve(response.socket?.bytesWritten ?? 0))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const url = `http://127.0.0.1:${port}/`
    assert.equal(await sendError({ url, allowPrivate: true, allowHttp: true }), null)
    // What stands in the buffers of two sockets comes on top.
    assert.ok((await left.promise) < 20_000_000)
    server.close()
  })

  test('that does not answer is given up after five seconds, or at once when asked to', async () => {
    await using sink = await httpSink()
    sink.reply = 'hang'
    const hook = { url: sink.url, allowPrivate: true, allowHttp: true }
    const stop = new AbortController()
    const stopped = sendError(hook, stop.signal)
    await sink.wait(1)
    stop.abort()
    assert.equal(await stopped, 'it was stopped before there was an answer')
    assert.equal(await sendError(hook), 'it did not answer within 5 s')
  })

  test('that is unreachable or does not resolve fails without naming it', async () => {
    await using sink = await httpSink()
    const { port } = sink
    await sink[Symbol.asyncDispose]()
    const url = `http://127.0.0.1:${port}/${CANARY}`
    assert.equal(
      await sendError({ url, allowPrivate: true, allowHttp: true }),
      'it could not be reached (ECONNREFUSED)',
    )
    const resolve = async (): Promise<IpAddress[]> => {
      throw new Error(`no such host: hook.example, asked for ${CANARY}`)
    }
    assert.match(
      (await sendError({ url: 'https://hook.example/', resolve })) ?? '',
      /not known by that/,
    )
  })
})

function* endless(): Generator<string> {
  for (;;) yield 'x'.repeat(16_384)
}
