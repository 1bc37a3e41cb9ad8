import { Link } from '../kit/link.tsx'
import { PageHead } from '../kit/section.tsx'
import { useLocation } from '../router.ts'
import { Operations } from './history/operations.tsx'
import { AuditView } from './history/audit-view.tsx'

/** What was done to whose runs, by whom and why; and what people asked for through the API. */
export function History() {
  const { query } = useLocation()
  const isOperations = query.get('tab') === 'operations'
  return (
    <>
      <PageHead title="History">
        {isOperations
          ? 'Every call that wanted to change something, refused ones too.'
          : 'Every recovery, cleaning and word of a person, with what it changed. Nothing is ever taken out.'}
      </PageHead>
      <nav class="tabs" aria-label="Kinds of history">
        <Link to="/history" class="tab" isCurrent={!isOperations}>
          Audit trail
        </Link>
        <Link to="/history?tab=operations" class="tab" isCurrent={isOperations}>
          Operations over HTTP
        </Link>
      </nav>
      {isOperations ? <Operations /> : <AuditView />}
    </>
  )
}
