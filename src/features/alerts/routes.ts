import { defineRoute, type Route } from '../../contracts/route.ts'
import { alertView } from '../../presenters/overview.ts'
import { ALERT_STORE } from './store/store.ts'

const RECENT_ALERTS = 50

export const ALERT_ROUTES: readonly Route<any, any, any, any>[] = [
  defineRoute('GET /api/alerts', {
    summary: 'Alerts that are open, and those that were resolved last.',
    response: 'alerts',
    handle: async ({ server: { store } }) => {
      const alerts = await store.extend(ALERT_STORE)
      return {
        open: (await alerts.listAlerts({ open: true })).map(alertView),
        recent: (await alerts.listAlerts({ open: false, limit: RECENT_ALERTS })).map(alertView),
      }
    },
  }),
]
