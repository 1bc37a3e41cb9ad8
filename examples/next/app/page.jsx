import { listRuns } from '../runs.js'

/** Read with each visit, not when the app was built. */
export const dynamic = 'force-dynamic'

export default function Page() {
  return (
    <main>
      <h1>Qualification runs</h1>
      <ul>
        {listRuns().map(({ id, status, completed, total, errorMessage }) => (
          <li key={id}>
            {id}: {status}, {completed} of {total}. {errorMessage}
          </li>
        ))}
      </ul>
      <p>
        <a href="/unstuck">Why?</a>
      </p>
    </main>
  )
}
