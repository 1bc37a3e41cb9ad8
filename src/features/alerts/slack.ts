import { destinationOf, type Channel } from './channel.ts'
import { wordingOf, type AlertMessage } from './message.ts'
import { post, type Hook } from './post.ts'

/** To an incoming webhook of Slack, or of what takes the same messages. */
export function slackChannel(hook: Hook): Channel {
  return {
    name: 'slack',
    destination: destinationOf('slack', [hook.url]),
    send: (message, signal) => post(hook, JSON.stringify(slackMessage(message)), {}, signal),
  }
}

/**
 * The evidence may hold text from web pages. It stands where Slack reads no markup, and is escaped besides: so nobody is
 * called by a `<!channel>`, and no address in it is opened for a preview.
 */
export function slackMessage(message: AlertMessage): object {
  const { headline, because, command, link } = wordingOf(message)
  const icon = { raised: '🔴', repeated: '🔴', resolved: '🟢', test: '🔵' }[message.event]
  const title = `${icon} ${headline}`
  const lines = [title, because, ...(command === null ? [] : [command]), ...(link ? [link] : [])]
  return {
    text: lines.map(escaped).join('\n'),
    blocks: [
      section(title),
      section(because),
      ...(command === null ? [] : [section(`$ ${command}`)]),
      ...(link === null
        ? []
        : [
            {
              type: 'section',
              text: { type: 'mrkdwn', text: `<${escaped(link)}|Open the dashboard>` },
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
  return { type: 'section', text: { type: 'plain_text', text: escaped(text), emoji: false } }
}

/** As Slack asks for: these three stand for themselves nowhere. */
function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
