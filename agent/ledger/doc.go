// Package ledger admits and concludes the control plane's commands on one PostgreSQL server and its PgBouncer.
//
// Every step with an outside effect is: commit the intent, act, commit the outcome. The ledger (schema ledger of the
// maintenance database) holds the intents, the outcomes, and the oid of everything that the platform made. A repeated command,
// after a crash or because its reply was lost, observes what exists and continues from there; a finished one gets its stored
// result. Nothing without our mark, a row of the ledger with its oid, is ever adopted, changed or dropped.
package ledger
