// Package dumpsql reads the SQL text that pg_dump writes: it splits a stream into statements, COPY data and the two
// backslash commands that a dump may hold, and understands just enough of a statement to make a dump portable.
//
// The text may be hostile (a customer's upload). The reader executes nothing, keeps at most one statement in memory, bounds the
// length of statements and of the whole, and refuses what psql would execute itself. Even if a hostile text is split
// differently than the server would split it, the server receives one statement per message, under a login without privileges.
package dumpsql
