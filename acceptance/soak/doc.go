//go:build linux

// Package soak shakes a whole pgherd as its users' worst week would. By a plan that is made from a seed, several accounts do
// everything that the service can, while its processes are killed and stopped, disks fill, networks are cut and clocks jump.
// After each round all is healed and comes to rest, and what must hold then is looked at: see invariants.go.
//
// What is pure stands in the packages plan and model. A round runs in namespaces of its own: nothing of it is left on the
// machine.
package soak
