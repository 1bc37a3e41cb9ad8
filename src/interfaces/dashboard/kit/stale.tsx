import type { ComponentChildren } from 'preact'
import { inWords } from '../../../core/model/time.ts'
import { useNow } from '../clock.ts'
import { pause, useConnection, type Connection } from '../live.ts'
import { Age } from './age.tsx'
import { Button } from './button.tsx'
import { Icon, type IconName } from './icon.tsx'
import { Prose } from './prose.tsx'

/** A cut line that is mended at once is nobody's business. */
const PATIENCE_MS = 4_000

/** Why what is shown may be old: the database is away, the server is, or the reader paused it. Nothing while all is well. */
export function Stale() {
  const connection = useConnection()
  useNow()
  const { state, trouble } = connection
  const age = <AgeOfPicture connection={connection} />
  if (state === 'paused') {
    return (
      <Banner tone="warn" icon="pause" title="Paused.">
        {age}
        <Button size="small" icon="play" onClick={() => pause(false)}>
          Go on
        </Button>
      </Banner>
    )
  }
  if (trouble) {
    return (
      <Banner tone="bad" icon="warning" title="The database does not answer.">
        It stopped <Age at={trouble.since} />. {age} It goes on by itself.{' '}
        <span class="faint">
          <Prose text={trouble.message} />
        </span>
      </Banner>
    )
  }
  if (state === 'live' || Date.now() - connection.since < PATIENCE_MS) return null
  return (
    <Banner tone="bad" icon="warning" title="No connection to the server.">
      {age} It is tried again by itself.
    </Banner>
  )
}

/** Whether what is shown can no longer be relied on. */
export function isStale({ state, trouble }: Connection): boolean {
  return trouble !== null || state === 'lost'
}

function AgeOfPicture({ connection: { heardAt } }: { connection: Connection }) {
  if (heardAt === null) return <>Nothing has come yet.</>
  return <>This is how things stood {inWords(Math.max(0, Date.now() - heardAt))} ago.</>
}

/** Only the title is read out when it appears: the ages in the rest change every second. */
function Banner(props: {
  tone: 'bad' | 'warn'
  icon: IconName
  title: string
  children: ComponentChildren
}) {
  return (
    <div class={`banner tone-${props.tone}`}>
      <Icon name={props.icon} />
      <div class="banner-words">
        <strong role="status">{props.title}</strong> {props.children}
      </div>
    </div>
  )
}
