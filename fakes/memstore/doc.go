// Package memstore keeps the metadata of the service in memory: it is ports.Store, ports.Admissions and ports.Notifier for
// tests and scenarios, and passes the same suites as the PostgreSQL adapter.
//
// Updates run one after another and roll back on an error, the unique rules are those of the PostgreSQL schema, and a broken
// rule ends its transaction as it does there: what comes after in the same transaction is refused, and so is the commit.
package memstore
