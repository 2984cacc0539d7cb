// Package pooler runs PgBouncer for the agent: it renders PgBouncer's files from the desired state, makes the running PgBouncer
// load them, verifies that it did, and closes clients.
//
// PgBouncer reports success for RELOAD even if it loaded nothing, so that answer is not trusted. Every rendered state ends with
// a mark, which SHOW CONFIG shows only if everything before it was read; databases, logins and the HBA file are then verified
// too.
//
// A database has two entries: one of its own name, pooled by session, and one with the suffix ".transaction". Whatever this
// package does to a database it does to both.
package pooler
