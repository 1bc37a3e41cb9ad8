import { STOP_DEADLINE_MS } from '../../../core/model/policy.ts'
import { commandInImage, DATA_IN_IMAGE } from './docker.ts'
import { KILL_AFTER_SECONDS, type Facts, type Supervisor } from './facts.ts'

const PATH = 'kubernetes.yaml'

export const kubernetes: Supervisor = {
  files: (facts) => [{ path: PATH, text: manifest(facts), about: 'for Kubernetes' }],
  next: () => [`kubectl apply -f ${PATH}`],
}

function manifest(facts: Facts): string {
  const { name } = facts
  return `# Runs \`unstuck work\` in a pod.
#
#   kubectl apply -f ${PATH}
#   kubectl logs -f deployment/${name}
#
# The image is the one of \`unstuck init --for docker\`, pushed to where your cluster gets its images.
# With a SQLite file there is one pod. For more, use PostgreSQL: set UNSTUCK_DB, raise replicas, and take out the
# strategy and all about the volume. The settings are explained in node_modules/unstuck/docs/supervisors.md.
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: ${name}
spec:
  # A disk, not a network share: on a share no lock proves that a worker is dead, so Unstuck refuses it.
  accessModes: [ReadWriteOnce]
  resources:
    requests:
      storage: 1Gi
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: ${name}
spec:
  replicas: 1
  # The old pod gives the disk back before the new one starts.
  strategy:
    type: Recreate
  selector:
    matchLabels:
      app: ${name}
  template:
    metadata:
      labels:
        app: ${name}
    spec:
      # Unstuck ends within ${STOP_DEADLINE_MS / 1_000} s of SIGTERM.
      terminationGracePeriodSeconds: ${KILL_AFTER_SECONDS}
      # The user "node" of the image, who must be able to write to the disk.
      securityContext:
        runAsNonRoot: true
        runAsUser: 1000
        fsGroup: 1000
      containers:
        - name: work
          image: ${name}:latest
          imagePullPolicy: IfNotPresent
          # Node itself: npm or a shell in between would keep SIGTERM from it.
          command: ${commandInImage(facts)}
          # env:
          #   - name: UNSTUCK_DB
          #     valueFrom:
          #       secretKeyRef: { name: ${name}, key: db }
          resources:
            requests:
              cpu: 250m
              memory: 256Mi
          volumeMounts:
            - name: data
              mountPath: ${DATA_IN_IMAGE}
      volumes:
        - name: data
          persistentVolumeClaim:
            claimName: ${name}
`
}
