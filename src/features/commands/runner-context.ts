import { TRUSTED_OBSERVER } from '../../core/decide/liveness.ts'
import { REAL_CLOCK } from '../../core/host/clock.ts'
import { makePolicyOf } from '../../core/model/policy-of.ts'
import { makeOperatorContext, type OperatorContext } from '../../core/recovery/context.ts'
import type { RunnerOptions } from './runner.ts'

/** How a runner assesses and recovers runs: with the policies of the config. */
export function runnerContext({ store, actor, overrides }: RunnerOptions): OperatorContext {
  const policyOf = makePolicyOf(overrides)
  const clock = REAL_CLOCK
  return makeOperatorContext({ store, actor, policyOf, observer: TRUSTED_OBSERVER, clock })
}
