// Package conformance holds one suite for each port. Every adapter and every fake passes the suite of its port, so that what a
// scenario shows on fakes also holds on the real service.
package conformance
