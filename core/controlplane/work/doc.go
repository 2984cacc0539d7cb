// Package work is the engine of operations. A capability registers its kinds of operations; the engine claims those that are
// due, runs their steps under leases, and makes them final.
//
// A step is one bounded piece of work. It never waits for long work: it asks the agent, and is put down until it is time to ask
// again. So no worker is kept busy by a backup that takes hours, and an agent that does not answer is given up after
// Config.StepTime.
//
// Work on a database server follows one rule: commit the intent, act, commit the outcome. Whoever finds an intent without an
// outcome continues it: a step must be able to begin again after a crash at any point.
package work
