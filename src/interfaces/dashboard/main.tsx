import { type ComponentChildren, render } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { ActionHost } from './kit/actions.tsx'
import { Shortcuts } from './kit/shortcuts.tsx'
import { isStale, Shell } from './shell.tsx'
import { startLive, useConnection } from './live.ts'
import { Empty, Failure, Loading } from './kit/states.tsx'
import { PageHead } from './kit/section.tsx'
import type { Page } from './model/location.ts'
import { DeadLetters } from './pages/dead-letters.tsx'
import { History } from './pages/history.tsx'
import { Login } from './pages/login.tsx'
import { LookupPage } from './pages/lookup.tsx'
import { Overview } from './pages/overview.tsx'
import { Recovery } from './pages/recovery.tsx'
import { RunPage } from './pages/run.tsx'
import { Runs } from './pages/runs.tsx'
import { TargetPage } from './pages/target.tsx'
import { Workers } from './pages/workers.tsx'
import { navigate, startRouter, useLocation } from './router.ts'
import { loadSession, useSession, useSessionFailure } from './session.ts'
import { startTheme } from './theme.ts'

function App() {
  const { page, path } = useLocation()
  useFocusHeading(path)
  if (page.name === 'login') return <Login />
  return (
    <Shell>
      <RequireSession>
        <CurrentPage page={page} />
      </RequireSession>
      <ActionHost />
      <Shortcuts />
    </Shell>
  )
}

/** Nothing is shown or loaded before the session is known. */
function RequireSession({ children }: { children: ComponentChildren }) {
  const session = useSession()
  const failure = useSessionFailure()
  const isOld = isStale(useConnection())
  if (session) return <>{children}</>
  // The banner shows the failure already.
  return failure && !isOld ? <Failure error={failure} /> : <Loading lines={6} />
}

function CurrentPage({ page }: { page: Page }) {
  switch (page.name) {
    case 'overview':
      return <Overview />
    case 'runs':
      return <Runs />
    case 'run':
      return <RunPage key={page.id} id={page.id} />
    case 'target':
      return <TargetPage key={page.id} id={page.id} />
    case 'lookup':
      return <LookupPage key={page.ref} what={page.what} named={page.ref} />
    case 'workers':
      return <Workers />
    case 'recovery':
      return <Recovery />
    case 'dead-letters':
      return <DeadLetters />
    case 'history':
      return <History />
    case 'login':
    case 'nowhere':
      return <NotFound />
  }
}

function NotFound() {
  return (
    <>
      <PageHead title="Nothing is here" />
      <Empty
        title="This address leads to no page of the dashboard."
        icon="question"
        action={{ label: 'To the overview', onClick: () => navigate('/') }}
      />
    </>
  )
}

/** Moves the focus to the heading of a new page, so that a screen reader announces it. */
function useFocusHeading(path: string): void {
  const isFirst = useRef(true)
  useEffect(() => {
    if (isFirst.current) {
      isFirst.current = false
      return
    }
    const heading = document.querySelector<HTMLElement>('main h1') ?? document.querySelector('main')
    heading?.focus({ preventScroll: true })
  }, [path])
}

startTheme()
startRouter()
startLive()
void loadSession()
render(<App />, document.getElementById('app')!)
