// Package postgres keeps the metadata of the service in PostgreSQL. It implements ports.Store, ports.Admissions and
// ports.Notifier.
//
// Transactions are READ COMMITTED. Use cases lock explicitly what must not change under them (Accounts.LockForQuota,
// Databases.Lock, Operations.Lock); databases by ID, and before the account that owns them: no two wait for each other.
// Uniqueness is enforced by constraints; errors.go turns a violation into the fault that the port names. SQL never asks for the
// time: it is a parameter of each statement.
//
// Every statement is built once, and prepared once for each connection; see statements.go.
package postgres
