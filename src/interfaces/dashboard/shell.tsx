import type { ComponentChildren } from 'preact'
import { call } from './api.ts'
import { Button } from './kit/button.tsx'
import { Icon, type IconName } from './kit/icon.tsx'
import { Link, useIsAt } from './kit/link.tsx'
import { type Connection, pause, useConnection, useLive } from './live.ts'
import { safe, toneOfSeverity } from './model/format.ts'
import { focusSection } from './router.ts'
import { useSession } from './session.ts'
import type { Overview } from './shapes.ts'
import { setTheme, THEMES, useTheme } from './theme.ts'
import { humanizeDuration } from '../../core/model/time.ts'
import { useNow } from './clock.ts'
import { Age, Prose } from './kit/text.tsx'

const PAGES: readonly { path: string; name: string; icon: IconName }[] = [
  { path: '/', name: 'Overview', icon: 'grid' },
  { path: '/runs', name: 'Runs', icon: 'list' },
  { path: '/workers', name: 'Workers', icon: 'people' },
  { path: '/recovery', name: 'Recovery', icon: 'lifebuoy' },
  { path: '/dead-letters', name: 'Dead letters', icon: 'letter' },
  { path: '/history', name: 'History', icon: 'history' },
]

/** Navigation, the state of the connection, and the user, around every page. */
export function Shell({ children }: { children: ComponentChildren }) {
  const isOld = isStale(useConnection())
  return (
    <div class="shell">
      <a class="skip" href="#main" onClick={skipToContent}>
        Skip to the content
      </a>
      <header class="bar">
        <Link to="/" class="row brand" label="Unstuck, to the overview">
          <Mark />
          <span>Unstuck</span>
        </Link>
        <Navigation />
        <div class="bar-foot">
          <LiveButton />
          <ThemeButton />
          <UserMenu />
        </div>
      </header>
      <main id="main" tabIndex={-1} data-stale={isOld ? '' : undefined}>
        <StaleBanner />
        {children}
      </main>
    </div>
  )
}

/** Without a step in the browser's history: Back leads to the page before. */
function skipToContent(event: MouseEvent): void {
  event.preventDefault()
  focusSection('main')
}

function Navigation() {
  const overview = useLive<Overview>('overview')
  const count = overview?.attention.length ?? 0
  const tone = toneOfSeverity(overview?.severity ?? 'ok')
  return (
    <nav class="nav" aria-label="Pages">
      {PAGES.map(({ path, name, icon }) => (
        <NavLink key={path} path={path}>
          <Icon name={icon} />
          <span>{name}</span>
          {path === '/' && count > 0 && (
            <span class={`badge tone-${tone}`}>
              {count}
              <span class="visually-hidden">
                {count === 1 ? ' thing needs attention' : ' things need attention'}
              </span>
            </span>
          )}
        </NavLink>
      ))}
    </nav>
  )
}

function NavLink({ path, children }: { path: string; children: ComponentChildren }) {
  const isAt = useIsAt(path)
  const isBelow = useIsAt('/targets') && path === '/runs'
  return (
    <Link to={path} class="nav-link" isCurrent={isAt || isBelow}>
      {children}
    </Link>
  )
}

function LiveButton() {
  const connection = useConnection()
  const isPaused = connection.state === 'paused'
  const { word, tone } = isPaused
    ? { word: 'Paused', tone: 'warn' }
    : isStale(connection)
      ? { word: 'No data', tone: 'bad' }
      : connection.state === 'live'
        ? { word: 'Live', tone: 'good' }
        : { word: 'Connecting', tone: 'quiet' }
  return (
    <button
      type="button"
      class={`button button-small chip-toned tone-${tone}`}
      title={isPaused ? 'Go on showing what happens' : 'Hold the picture still'}
      onClick={() => pause(!isPaused)}
    >
      <span class="live-dot" aria-hidden="true" />
      <span>
        {word}
        <span class="visually-hidden">{isPaused ? ', press to go on' : ', press to pause'}</span>
      </span>
      <Icon name={isPaused ? 'play' : 'pause'} size={12} />
    </button>
  )
}

function ThemeButton() {
  const theme = useTheme()
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]!
  const icon: IconName = theme === 'light' ? 'sun' : theme === 'dark' ? 'moon' : 'screen'
  return (
    <Button
      kind="quiet"
      size="small"
      icon={icon}
      label={`Theme: ${theme}. Change to ${next}`}
      onClick={() => setTheme(next)}
    />
  )
}

function UserMenu() {
  const session = useSession()
  if (!session) return null
  const { name, role, readOnly, store, loggedIn, version } = session
  const leave = () => {
    void call('POST', '/api/logout').finally(() => location.reload())
  }
  return (
    <div class="who">
      <span class="who-name" title={`Unstuck ${version} on ${safe(store.where)}`}>
        {safe(name)}
        <span class="faint"> · {readOnly ? 'read-only' : role}</span>
      </span>
      <span class="who-store faint" title={safe(store.where)}>
        {store.engine === 'sqlite' ? 'SQLite' : 'PostgreSQL'} · {safe(store.where)}
      </span>
      {loggedIn && <Button kind="quiet" size="small" icon="out" label="Log out" onClick={leave} />}
    </div>
  )
}

export function Mark({ size = 22 }: { size?: number }) {
  return (
    <svg class="mark" viewBox="0 0 32 32" width={size} height={size} aria-hidden="true">
      <rect class="mark-ground" width="32" height="32" rx="8" />
      <path d="M9 8v9.5a6 6 0 0 0 6 6M21.5 23.5V9m0 0-5 5m5-5 5 5" />
    </svg>
  )
}

/** A connection that is restored at once is not reported. */
const SHOW_AFTER_MS = 4_000

/** Why what is shown may be old: the database is away, the server is, or the reader paused it. Nothing while all is well. */
function StaleBanner() {
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
      <div class="fill">
        <strong role="status">{props.title}</strong> {props.children}
      </div>
    </div>
  )
}
