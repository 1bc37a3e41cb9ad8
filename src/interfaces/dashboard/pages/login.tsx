import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, call } from '../api.ts'
import { Button } from '../kit/button.tsx'
import { CopyCommand } from '../kit/copy.tsx'
import { Icon } from '../kit/icon.tsx'
import { useTitle } from '../kit/section.tsx'
import { navigate, useLocation } from '../router.ts'
import { loadSession, useSession, useSessionFailure } from '../session.ts'
import type { Session } from '../shapes.ts'
import { Mark } from '../shell.tsx'

/** Asks for a token, or leads to the login of the application that decides who may use the dashboard. */
export function Login() {
  useTitle('Log in')
  const session = useSession()
  const refusal = useSessionFailure()
  const { query } = useLocation()
  const onwards = () => navigate(query.get('next') ?? '/', { replace: true })
  // A session that was there may have ended.
  useEffect(() => void (session && loadSession()), [])

  const { by, url } = loginMethods(session, refusal)
  return (
    <main class="login" id="main">
      <div class="login-card frame stack">
        <Mark size={40} />
        <h1>Log in to Unstuck</h1>
        {session && (
          <p class="row soft">
            You are in already, as {session.name}.{' '}
            <Button size="small" onClick={onwards}>
              Go on
            </Button>
          </p>
        )}
        {by.includes('access') && <AccessLogin url={url} onEntered={onwards} />}
        {by.includes('token') && <TokenLogin isAlone={by.length === 1} onEntered={onwards} />}
      </div>
    </main>
  )
}

/** How the server identifies its users: the body of its 401. */
type LoginMethods = { readonly by: readonly ('access' | 'token')[]; readonly url: string | null }

/** None until the server has answered. */
function loginMethods(session: Session | null, refusal: ApiError | null): LoginMethods {
  const told = (refusal?.body as { login?: LoginMethods } | null | undefined)?.login
  const isByToken = session ? session.loggedIn : refusal !== null
  return told ?? { by: isByToken ? ['token'] : [], url: null }
}

function AccessLogin({ url, onEntered }: { url: string | null; onEntered: () => void }) {
  const [isBusy, setBusy] = useState(false)
  const [isRefused, setRefused] = useState(false)
  const tryAgain = async () => {
    setBusy(true)
    const isIn = await loadSession()
    setBusy(false)
    if (isIn) onEntered()
    else setRefused(true)
  }
  return (
    <>
      <p>
        The application that this dashboard is part of decides who may use it, and did not let you
        in.
      </p>
      <p class="soft">
        Log in there first. If you are logged in, ask its operator to give you a role: viewer,
        operator or admin.
      </p>
      {url !== null && (
        <a class="button button-primary button-large" href={url}>
          <span>Log in</span>
        </a>
      )}
      <Button size="large" isBusy={isBusy} onClick={() => void tryAgain()}>
        Try again
      </Button>
      {isRefused && <LoginError text="You are still not let in." />}
    </>
  )
}

/** The token goes to the server once; what stays is a cookie that no script can read. */
function TokenLogin({ isAlone, onEntered }: { isAlone: boolean; onEntered: () => void }) {
  const field = useRef<HTMLInputElement>(null)
  const [error, setError] = useState<string | null>(null)
  const [isBusy, setBusy] = useState(false)

  const enter = async (event: Event) => {
    event.preventDefault()
    const token = field.current!.value.trim()
    if (token === '') return setError('Paste the token first.')
    setBusy(true)
    setError(null)
    try {
      await call('POST', '/api/login', { body: { token } })
      field.current!.value = ''
      await loadSession()
      onEntered()
    } catch (failed) {
      if (!(failed instanceof ApiError)) throw failed
      setError(describeLoginError(failed))
      field.current?.select()
    } finally {
      setBusy(false)
    }
  }
  return (
    <form class="stack login-form" onSubmit={(event) => void enter(event)}>
      <label class="field field-wide">
        <span>{isAlone ? 'Token' : 'Or a token'}</span>
        <input
          ref={field}
          type="password"
          name="token"
          autocomplete="current-password"
          autoFocus
          spellcheck={false}
          aria-invalid={error !== null}
          aria-describedby={error === null ? undefined : 'login-error'}
        />
      </label>
      {error !== null && <LoginError text={error} />}
      <Button type="submit" kind="primary" size="large" isBusy={isBusy}>
        Log in
      </Button>
      <div class="foot stack soft small">
        {isAlone && (
          <>
            <p>No token yet? It is made on the server, and shown once:</p>
            <CopyCommand command="unstuck tokens add NAME --role operator" />
          </>
        )}
        <p class="faint">
          Roles: a viewer looks, an operator acts and can take it back, an admin also deletes. The
          token is not kept in this browser; a cookie is, until you log out.
        </p>
      </div>
    </form>
  )
}

function LoginError({ text }: { text: string }) {
  return (
    <p class="row bad" id="login-error" role="alert">
      <Icon name="warning" />
      <span>{text}</span>
    </p>
  )
}

function describeLoginError({ status, message, retryAfter }: ApiError): string {
  if (status === 401) return 'The server does not know this token. It may have been removed.'
  if (status === 429)
    return `Too many tries. Wait ${retryAfter === null ? 'a minute' : `${retryAfter} s`}, then try again.`
  return message
}
