// Package ports holds the interfaces that the use cases need, such as a store, an agent and a clock. Each has a conformance
// suite in acceptance/conformance, which every adapter and every fake passes.
//
// A port returns a *fault.Error, with one of the codes that its comment names, for what a caller of the API may see, and any
// other error for an internal failure.
package ports
