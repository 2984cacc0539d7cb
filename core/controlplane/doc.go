// Package controlplane composes the use cases of the service; each capability is a package below it. Another Go service embeds
// pgherd by building a ControlPlane from its own ports, or from the adapters of this module.
//
// Every method that serves a caller returns a *fault.Error for what the caller may see; its comment names the codes. Some are
// always possible and not named each time: INTERNAL_ERROR when a port fails, UNAUTHORIZED and RATE_LIMITED from Access.Admit,
// and RATE_LIMITED and SERVER_BUSY from whatever needs an agent; see access.Reached.MayCall. The last two mean that nothing was
// changed.
//
// Work on a database server follows one rule: commit the intent, act, commit the outcome. Whoever finds an intent without an
// outcome continues it; see package work.
package controlplane
