// Package postgres keeps the metadata of the service in PostgreSQL. It implements ports.Store, ports.Admissions and
// ports.Notifier. Package pgdb below it reaches the database and runs the statements.
//
// Transactions are READ COMMITTED. Use cases lock explicitly what must not change under them (Accounts.LockForQuota,
// Databases.Lock, Operations.Lock); databases by ID, and before the account that owns them: no two wait for each other.
// Uniqueness is enforced by constraints; refusals.go has the fault of each that a port names. SQL never asks for the time: it is
// a parameter of each statement.
package postgres
