// Package pooler runs PgBouncer for the agent: it renders PgBouncer's files from the desired state, makes the running
// PgBouncer take them over, reads back that it did, and closes clients.
//
// PgBouncer answers RELOAD with success also where it took nothing over, so nothing here trusts that answer. Every rendered
// state carries a mark that stands last in the file and shows in SHOW CONFIG only if all before it was read; databases,
// logins and the HBA file are then read back too.
//
// A database has two entries: one of its own name, pooled by session, and one with the suffix ".transaction". Whatever this
// package does to a database it does to both.
package pooler
