import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { describe, test } from 'node:test'
import { httpSink, mailSink } from '../../testing/test-receivers.ts'
import { DeliveryError, type Channel } from './channel.ts'
import {
  emailChannel,
  formatEmail,
  slackChannel,
  slackMessage,
  webhookChannel,
} from './channels.ts'
import type { AlertMessage } from './message.ts'

const RUN = '0199aaaa-0000-7000-8000-00004f2a91bc'
const MESSAGE: AlertMessage = {
  event: 'raised',
  key: 'k1',
  alert: {
    cause: `dead ${RUN}`,
    rule: 'dead',
    source: 'shop',
    run: RUN,
    because: 'no worker has it, 26 h old',
    command: 'unstuck clean 4f2a91bc',
    since: Date.UTC(2026, 0, 2, 3, 4, 5),
  },
  link: `https://unstuck.example/runs/${RUN}`,
}
const NEVER = new AbortController().signal
const ALLOW_LOCAL = { allowPrivate: true, allowHttp: true }

/** Text from web pages that would like to do something. */
const PAYLOADS = [
  '<!channel> look',
  '<!everyone|all> <!subteam^S1>',
  '<https://evil.example|Open the dashboard>',
  '&lt;!here&gt;',
  'a\r\nBcc: victim@evil.example\r\n\r\nhello',
  'a\nSubject: other',
  '</p><script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  '\u202egnp.exe \x1b]52;c;aGk=\x07',
  'x'.repeat(100_000),
]
const hostileMessage = (payload: string): AlertMessage => ({
  ...MESSAGE,
  alert: { ...MESSAGE.alert, source: payload, because: payload, command: payload },
})

async function sendError(channel: Channel, signal = NEVER): Promise<string> {
  const error: unknown = await channel.send(MESSAGE, signal).then(
    () => assert.fail('it was taken'),
    (error: unknown) => error,
  )
  assert.ok(error instanceof DeliveryError, String(error))
  assert.doesNotMatch(error.message, /canary/)
  return error.message
}

test('a message to Slack names the run, the evidence, the command and the dashboard, and opens no previews', async () => {
  await using sink = await httpSink()
  await slackChannel({ url: `${sink.url}/hook`, ...ALLOW_LOCAL }).send(MESSAGE, NEVER)
  const { body, headers } = sink.received[0]!
  assert.equal(headers['content-type'], 'application/json')
  assert.deepEqual(body.text.split('\n'), [
    '🔴 dead run 4f2a91bc of shop',
    'no worker has it, 26 h old',
    'unstuck clean 4f2a91bc',
    `https://unstuck.example/runs/${RUN}`,
  ])
  assert.deepEqual([body.unfurl_links, body.unfurl_media, body.link_names], [false, false, false])
  const over = slackMessage({ ...MESSAGE, event: 'resolved' }) as { text: string }
  assert.match(over.text, /^🟢 resolved: dead run 4f2a91bc of shop\n/)
  assert.doesNotMatch(over.text, /unstuck clean/)
})

test('S31 untrusted text reaches Slack as plain text and mentions no one', () => {
  for (const payload of PAYLOADS) {
    const { text, blocks } = slackMessage(hostileMessage(payload)) as {
      text: string
      blocks: any[]
    }
    assert.doesNotMatch(text, /[<>]|&(?!amp;|lt;|gt;)/)
    assert.ok(text.length < 6_000)
    const [own, theirs] = [blocks.at(-1), blocks.slice(0, -1)]
    assert.equal(own.text.text, `<https://unstuck.example/runs/${RUN}|Open the dashboard>`)
    for (const { text } of theirs) {
      assert.equal(text.type, 'plain_text')
      assert.doesNotMatch(text.text, /[<>\p{Cc}\u202e]/u)
      assert.ok(text.text.length <= 3_000)
    }
  }
})

test('a webhook gets the documented message, signed, with a key that is the same for each try', async () => {
  await using sink = await httpSink()
  const secret = 'a secret canary'
  const from = Date.now()
  await webhookChannel({ url: sink.url, secret, ...ALLOW_LOCAL }).send(MESSAGE, NEVER)
  await webhookChannel({ url: sink.url, secret: null, ...ALLOW_LOCAL }).send(MESSAGE, NEVER)
  const [signed, unsigned] = sink.received
  const { sentAt, ...rest } = signed!.body
  assert.ok(Date.parse(sentAt) >= from && Date.parse(sentAt) <= Date.now(), sentAt)
  assert.deepEqual(rest, {
    version: 1,
    event: 'raised',
    key: 'k1',
    headline: 'dead run 4f2a91bc of shop',
    alert: { ...MESSAGE.alert, since: '2026-01-02T03:04:05.000Z' },
    causes: [MESSAGE.alert.cause],
    link: MESSAGE.link,
  })
  assert.equal(signed!.headers['idempotency-key'], 'k1')
  const [, t, v1] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(
    signed!.headers['unstuck-signature'] as string,
  )!
  const expected = createHmac('sha256', secret).update(`${t}.${signed!.text}`).digest('hex')
  assert.equal(v1, expected)
  assert.equal(unsigned!.headers['unstuck-signature'], undefined)
  assert.doesNotMatch(signed!.text + JSON.stringify(signed!.headers), /canary/)
})

test('where a channel leads is known by a fingerprint, in which no password is', () => {
  const mail = (smtp: string, to = 'a@b.example') =>
    emailChannel({ smtp, from: 'c@d.example', to: [to] }).destination
  assert.match(mail('smtps://me:one@mail.example'), /^email [0-9a-f]{12}$/)
  assert.equal(mail('smtps://me:one@mail.example'), mail('smtps://me:two@mail.example'))
  assert.notEqual(mail('smtps://mail.example'), mail('smtps://mail.example', 'x@b.example'))
  const hook = (path: string) =>
    webhookChannel({ url: `https://x.example/${path}`, secret: null, ...ALLOW_LOCAL })
  assert.equal(hook('a?key=one').destination, hook('a?key=two').destination)
  assert.notEqual(hook('a').destination, hook('b').destination)
})

describe('mail', { concurrency: true }, () => {
  const box = (port: number, user = '') => ({
    smtp: `smtp://${user}127.0.0.1:${port}`,
    from: 'Unstuck <unstuck@example.com>',
    to: ['ops@example.com', 'night@example.com'],
  })

  test('reaches each address, as text and as HTML, by way of a server that wants a password', async () => {
    await using sink = await mailSink({ name: 'me', password: 'p/w canary' })
    await emailChannel(box(sink.port, 'me:p%2Fw%20canary@')).send(MESSAGE, NEVER)
    const { from, to, source } = sink.received[0]!
    assert.equal(from, 'unstuck@example.com')
    assert.deepEqual(to, ['ops@example.com', 'night@example.com'])
    assert.match(source, /^Subject: \[unstuck\] dead run 4f2a91bc of shop\r$/m)
    assert.match(source, /^Auto-Submitted: auto-generated\r$/m)
    assert.match(source, /^no worker has it, 26 h old\r$/m)
    assert.match(source, /<strong>dead run 4f2a91bc of shop<\/strong>/)
    assert.doesNotMatch(source, /canary/)
  })

  test('S31 untrusted text adds no header and no markup', async () => {
    await using sink = await mailSink()
    const channel = emailChannel(box(sink.port))
    for (const payload of PAYLOADS) await channel.send(hostileMessage(payload), NEVER)
    assert.equal(sink.received.length, PAYLOADS.length)
    for (const { to, source } of sink.received) {
      assert.deepEqual(to, ['ops@example.com', 'night@example.com'])
      const head = source.slice(0, source.indexOf('\r\n\r\n'))
      const names = [...head.matchAll(/^([A-Za-z-]+):/gm)].map(([, name]) => name!.toLowerCase())
      assert.equal(new Set(names).size, names.length)
      assert.ok(!names.includes('bcc'))
    }
    for (const payload of PAYLOADS) {
      const { subject, text, html } = formatEmail(hostileMessage(payload))
      assert.doesNotMatch(subject, /\p{Cc}/u)
      assert.ok(subject.length < 200)
      assert.doesNotMatch(text, /(?!\n)\p{Cc}|\u202e/u)
      assert.deepEqual(
        [...html.matchAll(/<\/?([a-z]+)/g)].map(([, tag]) => tag),
        ['p', 'strong', 'strong', 'p', 'p', 'p', 'pre', 'pre', 'p', 'a', 'a', 'p'],
      )
      assert.equal(html.match(/href=/g)?.length, 1)
    }
  })

  test('that is refused or not accepted fails without naming the address or password', async () => {
    await using sink = await mailSink({ name: 'me', password: 'right' })
    const { port } = sink
    const wrong = emailChannel(box(port, 'me:canary@'))
    assert.equal(await sendError(wrong), 'the mail server does not accept its user and password')
    assert.equal(await sendError(emailChannel(box(port))), 'the mail server answered 530')
    await sink[Symbol.asyncDispose]()
    assert.match(await sendError(wrong), /^the mail server could not be reached \([A-Z]+\)$/)
  })

  test('over TLS goes only to a server whose certificate is trusted', async () => {
    await using sink = await mailSink(undefined, true)
    const smtp = `smtps://localhost:${sink.port}`
    assert.match(await sendError(emailChannel({ ...box(0), smtp })), /could not be reached \(E/)
    await emailChannel({ ...box(0), smtp: `${smtp}?tls.rejectUnauthorized=false` }).send(
      MESSAGE,
      NEVER,
    )
    assert.equal(sink.received.length, 1)
  })

  test('to a server that does not respond is given up in time, or at once when aborted', async () => {
    await using sink = await mailSink()
    sink.hangs = true
    const stop = new AbortController()
    const stopped = sendError(emailChannel(box(sink.port)), stop.signal)
    setTimeout(() => stop.abort(), 100)
    assert.match(await stopped, /^it was stopped/)
    assert.match(await sendError(emailChannel(box(sink.port))), /did not answer in time/)
  })
})
