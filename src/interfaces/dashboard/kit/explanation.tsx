import { safe } from '../model/format.ts'
import type { Explanation } from '../shapes.ts'
import { Age, Prose, WorkerName } from './text.tsx'
import { StatusPill } from './status.tsx'

/** A verdict: its reason, its evidence, what would change it, and the settings that apply. */
export function ExplanationDetails({ explanation }: { explanation: Explanation }) {
  const { run, target, verdict, cause, owner, evidence, policy, changes } = explanation
  const { acknowledged } = target ?? run
  const isLeft = cause !== null || verdict.action === 'leave'
  return (
    <div class="pad stack">
      <p class="strong">
        <StatusPill is={isLeft ? (target ?? run).status : verdict.action} />{' '}
        {safe(cause ?? verdict.because)}
      </p>
      {acknowledged && (
        <p>An operator acknowledged it: it no longer counts as needing attention.</p>
      )}
      {owner && (
        <p>
          <StatusPill is={owner.liveness} why={safe(owner.because)} /> <WorkerName is={owner} />,
          last heartbeat <Age at={owner.lastHeartbeatAt} />
        </p>
      )}
      {evidence.length > 0 && (
        <>
          <h3>Evidence</h3>
          <ul class="plain-list">
            {evidence.map((sentence) => (
              <li key={sentence}>{safe(sentence)}</li>
            ))}
          </ul>
        </>
      )}
      {changes.length > 0 && (
        <>
          <h3>{cause === null || acknowledged ? 'What would change it' : 'What to do'}</h3>
          <ul class="plain-list">
            {changes.map((change) => (
              <li key={change}>
                <Prose text={change} />
              </li>
            ))}
          </ul>
        </>
      )}
      {policy.length > 0 && (
        <details>
          <summary>Settings that apply</summary>
          <dl class="pairs">
            {policy.map(({ name, group, value, origin }) => (
              <div key={`${group} ${name}`}>
                <dt class="mono">{group === null ? name : `${safe(group)}: ${name}`}</dt>
                <dd>
                  <span class="mono">{safe(String(value))}</span>{' '}
                  <span class="faint">{origin}</span>
                </dd>
              </div>
            ))}
          </dl>
        </details>
      )}
    </div>
  )
}
