package pooler

import _ "embed"

// SchemaSQL makes the schema `pooler` in the maintenance database: the gate and the function that hands PgBouncer its
// verifiers. A superuser runs it there, once or again, after the role pgherd_agent exists. It makes the roles
// pgherd_pooler (a login, without a password yet) and pgherd_secret_reader.
//
//go:embed schema.sql
var SchemaSQL string
