// Package stack runs a whole pgherd for tests the way an operator does: the program itself as child processes, with real
// PostgreSQL, PgBouncer and TLS. Metadata and customers' databases stand in clusters of their own, so that each part can be
// stopped, frozen or killed alone.
//
// It knows nothing of testing: every failure is an error, and whoever waits gives a context with a deadline.
package stack
