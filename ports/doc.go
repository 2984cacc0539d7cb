// Package ports holds the interfaces that the use cases need: what a store, an agent, a clock must do for them. Each has
// a conformance suite in acceptance/conformance that every adapter and every fake passes.
//
// A port returns a *fault.Error for what a caller of the API may be told, with the codes that its comment names, and any
// other error for what is internal.
package ports
