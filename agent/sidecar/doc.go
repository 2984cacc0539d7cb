// Package sidecar turns a copy that was loaded from a portable dump into the database that was dumped: it gives everything its
// owner, its privileges, and policies their roles. It takes them from the sidecar, a schema-only dump with owners and
// privileges of the same snapshot, and proves with another such dump, of the copy, that nothing differs.
//
// The sidecar is never executed. It is full of names that a customer chose, and whoever acts here is the agent, which may do a
// lot. A statement about owners, privileges or policies is parsed strictly and composed again; one that is almost like it is
// an error. All others must begin as those that pg_dump writes, and are only compared. Nothing that is composed evaluates an
// expression or calls a function of the customer's.
package sidecar
