// Package conformance holds one suite for each port. Every adapter and every fake passes the suite of its port, so that what a
// scenario shows on fakes holds on the real thing.
package conformance
