import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEFAULT_RULES } from './rule.ts'
import { defineConfig, makeSettings } from '../../app/config.ts'
import { alertSecrets, ALERTS_SECTION, alertsView } from './section.ts'

const CANARY = 'canary-hunter2'
const CHANNELS = {
  slack: { url: `https://hooks.slack.example/services/${CANARY}` },
  email: {
    smtp: `smtps://me:${CANARY}@mail.example:465`,
    from: 'Unstuck <a@b.example>',
    to: ['c@d.example'],
  },
  webhook: { url: `https://x.example/?k=${CANARY}`, secret: CANARY, allowPrivate: true },
}

/** The mistakes, one by one. */
async function configErrors(config: unknown): Promise<string[]> {
  try {
    await makeSettings(config, '/x/unstuck.config.ts')
    return []
  } catch (error) {
    const { message } = error as Error
    assert.doesNotMatch(message, /canary/)
    return message.split('\n- ').slice(1)
  }
}
const settings = async (config: object) => {
  const made = await makeSettings(config, null)
  const { url, warnings } = made
  return { alerts: made.section(ALERTS_SECTION), url, warnings }
}

test('alert settings of the config are applied', async () => {
  const { alerts, url, warnings } = await settings(
    defineConfig({
      url: 'https://unstuck.example.com/ops?x=1',
      alerts: [
        { when: 'orphans', moreThan: 5, within: '30m', to: ['slack', 'email'] },
        { when: 'dead', to: ['webhook'], sources: ['shop'], repeat: 'never', resolved: false },
        { when: 'parked' },
      ],
      channels: CHANNELS,
    }),
  )
  const repeatMs = 4 * 3_600_000
  assert.deepEqual(alerts.rules, [
    {
      when: 'orphans',
      moreThan: 5,
      withinMs: 1_800_000,
      sources: [],
      to: ['slack', 'email'],
      repeatMs,
      notifyResolved: true,
    },
    { when: 'dead', sources: ['shop'], to: ['webhook'], repeatMs: null, notifyResolved: false },
    { when: 'parked', sources: [], to: [], repeatMs, notifyResolved: true },
  ])
  assert.equal(url, 'https://unstuck.example.com/ops')
  assert.deepEqual([alerts.areConfigured, alerts.missing, warnings], [true, [], []])
  assert.deepEqual(alerts.channels.webhook, { ...CHANNELS.webhook, allowHttp: false })
})

test('without alert settings everything shows on the dashboard, and nothing is sent', async () => {
  const { alerts } = await settings({})
  assert.equal(alerts.areConfigured, false)
  assert.equal(alerts.rules, DEFAULT_RULES)
  assert.ok(alerts.rules.every(({ to }) => to.length === 0))
  assert.deepEqual((await settings({ alerts: [] })).alerts.rules, [])
})

test('an address that the environment lacks is a warning, and the rules still count', async () => {
  const { alerts, warnings } = await settings({
    alerts: [{ when: 'dead', to: ['slack', 'email', 'webhook'] }],
    channels: {
      slack: { url: undefined },
      email: { ...CHANNELS.email, smtp: '' },
      webhook: { ...CHANNELS.webhook, secret: undefined },
    },
  })
  assert.deepEqual(alerts.missing, ['slack', 'email'])
  assert.equal(alerts.channels.slack, null)
  assert.deepEqual(warnings, [
    'channels.slack.url is not set: nothing is sent there.',
    'channels.email.smtp is not set: nothing is sent there.',
    'channels.webhook.secret is not set: messages are not signed.',
  ])
})

test('all errors are reported at once, with suggestions and without a secret', async () => {
  const config = {
    url: `ftp://me:${CANARY}@x.example`,
    allerts: [],
    alerts: [
      { when: 'orphan', to: ['slak', 'email', 7] },
      { when: 'dead', moreThan: 3, repat: '4h' },
      {
        when: 'orphans',
        moreThan: -1,
        within: '8d',
        repeat: '5s',
        resolved: 'yes',
        sources: 'shop',
      },
      'dead',
    ],
    channels: {
      slack: { url: `http://hooks.example/${CANARY}`, allowPrivat: true, allowHttp: 'no' },
      webhook: { url: CANARY },
      sms: {},
    },
  }
  assert.deepEqual(await configErrors(config), [
    'there is no "allerts"; did you mean alerts?',
    'url must be the address of the dashboard, as in https://unstuck.example.com',
    'channels has no sms; there are slack, email, webhook',
    'alerts[0].when must be one of orphans, dead, parked, silent, overrun, gave-up; did you mean orphans?',
    'alerts[0].to[0] is no channel; did you mean slack?',
    'alerts[0].to[1] is email, which channels does not set up',
    'alerts[0].to[2] is no channel; there are slack, email, webhook',
    'alerts[1] has no moreThan; there are when, sources, to, repeat, resolved',
    'alerts[1] has no repat; did you mean repeat?',
    'alerts[2].sources must be a list of names of sources',
    "alerts[2].repeat must be a duration from 1m on, as in '4h', or 'never'",
    'alerts[2].resolved must be true or false',
    'alerts[2].moreThan must be a whole number from 0 to 2147483647',
    "alerts[2].within must be a duration up to 7d, as in '1h'",
    'alerts[3] must be an object',
    'channels.slack has no allowPrivat; did you mean allowPrivate?',
    'channels.slack.allowHttp must be true or false',
    'channels.slack.url must begin with https://; allowHttp: true allows http://',
    'channels.webhook.url must be an address that begins with https://',
  ])
  for (const wrong of [
    { from: 'a@b.example\r\nBcc: x@y.example', to: ['c@d.example'] },
    { from: 'a@b.example', to: [] },
    { from: 'nobody', to: ['c@d.example'] },
  ]) {
    assert.equal(
      (await configErrors({ channels: { email: { smtp: 'smtp://x', ...wrong } } })).length,
      1,
    )
  }
  assert.equal(
    (await configErrors({ channels: { email: { ...CHANNELS.email, smtp: `x:${CANARY}` } } }))
      .length,
    1,
  )
  assert.deepEqual(await configErrors({ alerts: {}, channels: [] }), [
    'channels must be an object',
    'alerts must be a list of rules',
  ])
})

test('channels are shown with their destination, not their credentials', async () => {
  const found = await settings({ channels: CHANNELS, alerts: [{ when: 'orphans', to: ['slack'] }] })
  const view = alertsView(found.alerts, found)
  assert.doesNotMatch(JSON.stringify(view), /canary|services/)
  assert.deepEqual(view.channels.slack, {
    host: 'hooks.slack.example',
    allowPrivate: false,
    allowHttp: false,
  })
  assert.deepEqual(view.channels.email?.host, 'mail.example:465')
  assert.equal(view.channels.webhook?.signed, true)
  assert.deepEqual(view.alerts[0], {
    when: 'orphans',
    moreThan: 3,
    within: '1h',
    sources: [],
    to: ['slack'],
    repeat: '4h',
    resolved: true,
  })
  assert.equal(alertSecrets(found.alerts).length, 4)
})
