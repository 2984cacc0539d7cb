// Package fakeagent is ports.Fleet in memory: servers with databases, logins, open sessions and backup files, and agents
// that keep the same ledger as real ones. It answers what a customer would see ("does this log-in get in?"), and it can be
// told to fail the way a network and a server do.
package fakeagent
