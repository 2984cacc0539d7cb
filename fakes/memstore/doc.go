// Package memstore keeps the metadata of the service in memory. It implements ports.Store, ports.Admissions and ports.Notifier
// for tests and scenarios, and passes the same suites as the PostgreSQL adapter.
//
// Updates run one after another and roll back on an error. The uniqueness rules are those of the PostgreSQL schema, and as
// there, a violation aborts its transaction: further statements in it are refused, and so is the commit.
package memstore
