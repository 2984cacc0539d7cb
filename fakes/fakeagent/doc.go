// Package fakeagent implements ports.Fleet in memory: servers with databases, logins, open sessions and backup files, and
// agents that keep the same ledger as real ones. It shows what a customer would see, such as whether a log-in works, and can be
// made to fail the way a network or a server does.
package fakeagent
