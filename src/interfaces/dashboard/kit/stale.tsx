import type { ComponentChildren } from 'preact'
import { humanizeDuration } from '../../../core/model/time.ts'
import { useNow } from '../clock.ts'
import { pause, useConnection, type Connection } from '../live.ts'
import { Age } from './age.tsx'
import { Button } from './button.tsx'
import { Icon, type IconName } from './icon.tsx'
import { Prose } from './prose.tsx'

/** A cut line that is mended at once is nobody's business. */
const SHOW_AFTER_MS = 4_000

/** Why what is shown may be old: the database is away, the server is, or the reader paused it. Nothing while all is well. */
export function StaleBanner() {
  const connection = useConnection()
  useNow()
  const { state, storeError } = connection
  const age = <DataAge connection={connection} />
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
  if (storeError) {
    return (
      <Banner tone="bad" icon="warning" title="The database does not answer.">
        It stopped <Age at={storeError.since} />. {age} It goes on by itself.{' '}
        <span class="faint">
          <Prose text={storeError.message} />
        </span>
      </Banner>
    )
  }
  if (state === 'live' || Date.now() - connection.since < SHOW_AFTER_MS) return null
  return (
    <Banner tone="bad" icon="warning" title="No connection to the server.">
      {age} It is tried again by itself.
    </Banner>
  )
}

/** Whether what is shown can no longer be relied on. */
export function isStale({ state, storeError }: Connection): boolean {
  return storeError !== null || state === 'lost'
}

function DataAge({ connection: { lastEventAt } }: { connection: Connection }) {
  if (lastEventAt === null) return <>Nothing has come yet.</>
  return (
    <>This is how things stood {humanizeDuration(Math.max(0, Date.now() - lastEventAt))} ago.</>
  )
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
