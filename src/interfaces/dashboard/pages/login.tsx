import { useRef, useState } from 'preact/hooks'
import { ApiError, call } from '../api.ts'
import { Button } from '../kit/button.tsx'
import { CopyCommand } from '../kit/copy.tsx'
import { Icon } from '../kit/icon.tsx'
import { useTitle } from '../kit/section.tsx'
import { navigate, useLocation } from '../router.ts'
import { loadSession, useSession } from '../session.ts'
import { Mark } from '../shell.tsx'

/** A token opens the dashboard. It goes to the server once; what stays is a cookie that no script can read. */
export function Login() {
  useTitle('Log in')
  const session = useSession()
  const { query } = useLocation()
  const field = useRef<HTMLInputElement>(null)
  const [error, setError] = useState<string | null>(null)
  const [isBusy, setBusy] = useState(false)
  const onwards = () => navigate(query.get('next') ?? '/', { replace: true })

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
      onwards()
    } catch (failed) {
      if (!(failed instanceof ApiError)) throw failed
      setError(describeLoginError(failed))
      field.current?.select()
    } finally {
      setBusy(false)
    }
  }
  return (
    <main class="login" id="main">
      <form class="login-card frame stack" onSubmit={(event) => void enter(event)}>
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
        <label class="field field-wide">
          <span>Token</span>
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
        {error !== null && (
          <p class="row bad" id="login-error" role="alert">
            <Icon name="warning" />
            <span>{error}</span>
          </p>
        )}
        <Button type="submit" kind="primary" size="large" isBusy={isBusy}>
          Log in
        </Button>
        <div class="foot stack soft small">
          <p>No token yet? It is made on the server, and shown once:</p>
          <CopyCommand command="unstuck tokens add NAME --role operator" />
          <p class="faint">
            Roles: a viewer looks, an operator acts and can take it back, an admin also deletes. The
            token is not kept in this browser; a cookie is, until you log out.
          </p>
        </div>
      </form>
    </main>
  )
}

function describeLoginError({ status, message, retryAfter }: ApiError): string {
  if (status === 401) return 'The server does not know this token. It may have been removed.'
  if (status === 429)
    return `Too many tries. Wait ${retryAfter === null ? 'a minute' : `${retryAfter} s`}, then try again.`
  return message
}
