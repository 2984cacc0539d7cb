// Package cluster starts and stops real PostgreSQL clusters and PgBouncers, for the dev host and for tests.
//
// A child never outlives its caller: it ends when it is told to, when the context of its start ends and, on Linux, when the
// calling process dies in any way. PostgreSQL and PgBouncer refuse to run as root: where the caller is root, they run as the
// user named by PGHERD_RUN_AS, by default nobody, and own what they must write.
//
// It is not used in production, where the operator's own service manager runs both.
package cluster
