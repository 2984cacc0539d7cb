// Package poolermem keeps PgBouncer's memory within a bound: above it, clients are ended of accounts that hold more than their
// share.
//
// What a client can have PgBouncer hold has no limit of PgBouncer's own. At <name>.transaction these are the names and texts of
// prepared statements and the message that is not complete yet, and at both entries a note of each request that PostgreSQL has
// not answered, 40 bytes for a message of as few as 5. PgBouncer says how many statements a client has and what all clients of an
// entry have sent, but of nobody how much is held: so that is estimated, by account.
package poolermem
