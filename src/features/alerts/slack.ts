import { destinationOf, type Channel } from './channel.ts'
import { formatMessage, type AlertMessage } from './message.ts'
import { postJson, type WebhookSettings } from './post.ts'

/** To an incoming webhook of Slack, or of what takes the same messages. */
export function slackChannel(settings: WebhookSettings): Channel {
  return {
    name: 'slack',
    destination: destinationOf('slack', [settings.url]),
    send: (message, signal) =>
      postJson(settings, JSON.stringify(slackMessage(message)), {}, signal),
  }
}

/**
 * The evidence may contain text from web pages. It is placed where Slack reads no markup, and escaped as well, so that a
 * `<!channel>` notifies no one and no address in it is opened for a preview.
 */
export function slackMessage(message: AlertMessage): object {
  const { headline, because, command, link } = formatMessage(message)
  const icon = { raised: '🔴', repeated: '🔴', resolved: '🟢', test: '🔵' }[message.event]
  const title = `${icon} ${headline}`
  const lines = [title, because, ...(command === null ? [] : [command]), ...(link ? [link] : [])]
  return {
    text: lines.map(escapeMrkdwn).join('\n'),
    blocks: [
      section(title),
      section(because),
      ...(command === null ? [] : [section(`$ ${command}`)]),
      ...(link === null
        ? []
        : [
            {
              type: 'section',
              text: { type: 'mrkdwn', text: `<${escapeMrkdwn(link)}|Open the dashboard>` },
            },
          ]),
    ],
    unfurl_links: false,
    unfurl_media: false,
    link_names: false,
    parse: 'none',
  }
}

function section(text: string): object {
  return { type: 'section', text: { type: 'plain_text', text: escapeMrkdwn(text), emoji: false } }
}

/** As Slack asks for: these three stand for themselves nowhere. */
function escapeMrkdwn(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
