import { safe } from '../model/safe.ts'
import type { Explanation } from '../shapes.ts'
import { Age } from './age.tsx'
import { evidenceSentences } from './evidence.ts'
import { Prose } from './prose.tsx'
import { Pill, StatusPill } from './status.tsx'
import { actionStyle } from './verdict-style.ts'
import { WorkerName } from './worker-name.tsx'

/** A verdict for people: the reason first, then the evidence, the settings it hangs on, and what comes next. */
export function ExplanationDetails({ explanation }: { explanation: Explanation }) {
  const { verdict, owner, evidence, policy, changes } = explanation
  const sentences = evidenceSentences(evidence)
  return (
    <div class="explained">
      <p class="explained-verdict">
        <Pill {...actionStyle(verdict.action)} /> {safe(verdict.because)}
      </p>
      {owner && (
        <p>
          <StatusPill is={owner.liveness} why={safe(owner.because)} /> <WorkerName is={owner} />,
          last beat <Age at={owner.lastHeartbeatAt} />
        </p>
      )}
      {sentences.length > 0 && (
        <>
          <h3>Evidence</h3>
          <ul class="plain-list">
            {sentences.map((sentence) => (
              <li key={sentence}>{safe(sentence)}</li>
            ))}
          </ul>
        </>
      )}
      {changes.length > 0 && (
        <>
          <h3>What would change it</h3>
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
          <summary>Settings it hangs on</summary>
          <dl class="settings">
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
