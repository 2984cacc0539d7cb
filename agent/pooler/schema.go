package pooler

import _ "embed"

// SchemaSQL creates the schema `pooler` in the maintenance database: the gate, and the function that returns verifiers to
// PgBouncer. A superuser runs it there, any number of times, after the role pgherd_agent exists. It creates the roles
// pgherd_pooler (a login, without a password yet) and pgherd_secret_reader.
//
//go:embed schema.sql
var SchemaSQL string
