// Package dumpsql reads the SQL text that pg_dump writes: it splits a stream into statements, COPY data and the two
// backslash commands that a dump may hold, and understands just enough of a statement to make a dump portable.
//
// The text may be hostile (a customer's upload). The reader executes nothing, keeps at most one statement in memory, bounds
// its length and the length of the whole, and refuses what psql would execute itself. Where a hostile text makes it split
// otherwise than the server would, the server still sees one message at a time, under a login that may do nothing.
package dumpsql
