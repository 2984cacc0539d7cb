// Package conformance holds one suite for each port: those of the small ones here, that of the agent in agent, and those of the
// metadata in store. Every adapter and every fake passes the suite of its port, so that what a scenario shows on fakes also holds
// on the real service.
package conformance
