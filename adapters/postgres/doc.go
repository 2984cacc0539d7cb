// Package postgres keeps the metadata of the service in PostgreSQL: it is ports.Store, ports.Admissions and ports.Notifier.
//
// Transactions are READ COMMITTED. Whatever must not change under a use case is locked by name (Accounts.LockForQuota,
// Databases.Lock, Operations.Lock), and whatever must be unique is a constraint; errors.go turns a broken one into the
// fault that the port names. SQL never asks for the time: each statement is given it.
//
// Every statement is built once and prepared once for each connection; see statements.go.
package postgres
