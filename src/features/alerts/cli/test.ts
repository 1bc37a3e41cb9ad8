import { CHANNEL_NAMES, type ChannelName } from '../rule.ts'
import { UsageError } from '../../../core/model/errors.ts'
import { EXIT } from '../../../core/model/exit-codes.ts'
import { newId } from '../../../core/model/id.ts'
import { deliveryFailure, type Channel } from '../channel.ts'
import type { AlertMessage } from '../message.ts'
import { ALERTS_SECTION } from '../section.ts'
import { makeChannels } from '../channels.ts'
import { currentUser } from '../../../lib/process/this-process.ts'
import { defineCommand } from '../../../contracts/command.ts'
import { option } from '../../../contracts/options.ts'

/** How a channel took the test. */
type ChannelTestResult = {
  readonly channel: ChannelName
  readonly taken: boolean
  /** Why not; null when it was taken. */
  readonly because: string | null
}

export const command = defineCommand({
  examples: ['unstuck alerts test', 'unstuck alerts test --channel slack'],
  options: { channel: option.choice(CHANNEL_NAMES, 'this one only', undefined) },

  async run({ options, settings }) {
    const config = await settings()
    const alerts = config.section(ALERTS_SECTION)
    const isAsked = (name: ChannelName): boolean => (options.channel ?? name) === name
    const channels = makeChannels(alerts.channels).filter(({ name }) => isAsked(name))
    const missing = alerts.missing.filter(isAsked)
    if (channels.length + missing.length === 0) {
      throw new UsageError(
        `${options.channel ?? 'No channel'} is ${options.channel ? 'not ' : ''}set up. ` +
          'Add it to `channels` in unstuck.config.ts, as in channels: { slack: { url: process.env.UNSTUCK_SLACK_WEBHOOK } }.',
      )
    }
    const message = testMessage(config.url)
    const tested: ChannelTestResult[] = [
      ...(await Promise.all(channels.map((channel) => testChannel(channel, message)))),
      ...missing.map((channel) => ({
        channel,
        taken: false,
        because: 'its address is not set; look at the environment of this shell',
      })),
    ]
    return {
      data: { channels: tested },
      print: (writer) => {
        for (const { channel, because } of tested) {
          if (because === null) writer.paragraph({ text: `${channel}: taken`, style: 'good' })
          else writer.paragraph({ text: `${channel}: not taken: ${because}`, style: 'bad' })
        }
      },
      exitCode: tested.every(({ taken }) => taken) ? EXIT.done : EXIT.failed,
    }
  },
})

async function testChannel(channel: Channel, message: AlertMessage): Promise<ChannelTestResult> {
  const { name } = channel
  try {
    await channel.send(message, new AbortController().signal)
    return { channel: name, taken: true, because: null }
  } catch (error) {
    return { channel: name, taken: false, because: deliveryFailure(error) }
  }
}

function testMessage(url: string | null): AlertMessage {
  return {
    event: 'test',
    key: newId(),
    alert: {
      cause: 'test',
      rule: 'test',
      source: null,
      run: null,
      because: `${currentUser()} asked for it; nothing is wrong`,
      command: 'unstuck alerts list',
      since: Date.now(),
    },
    link: url,
  }
}
