package work

import "github.com/pgherd/pgherd/core/operation"

// Reserved is the crash point after the intent of an operation was committed and before anybody works on it.
func Reserved(k operation.Kind) string { return string(k) + ".reserved" }

// Before is the crash point before a call or commit of a kind's step.
func Before(k operation.Kind, what string) string { return string(k) + ".before-" + what }

// After is Before for the other side.
func After(k operation.Kind, what string) string { return string(k) + ".after-" + what }

// Points are the crash points of all registered kinds: Config.Crash is called there, so that a test can kill the process and
// show that the next start continues.
func (e *Engine) Points() (list []string) {
	for _, name := range e.names {
		list = append(list, e.kinds[name].points...)
	}
	return list
}

func pointsOf(k operation.Kind, calls, commits []string) []string {
	list := []string{Reserved(k)}
	for _, what := range append(calls[:len(calls):len(calls)], commits...) {
		list = append(list, Before(k, what), After(k, what))
	}
	return list
}
